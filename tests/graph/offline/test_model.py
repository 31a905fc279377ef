"""The offline model as the graph's nodes see it."""

import asyncio
import dataclasses
import itertools
import json

import pytest
from tests.graph.offline.subjects import BASELINES, CPU, HOPPER, subject_of

from ridgeline.graph.models.requests import Elite, IdeaList, IdeationRequest, KernelDraft, KernelRequest, TriedIdea
from ridgeline.graph.offline import OfflineModel
from ridgeline.graph.offline.composer import header_line, structures_of
from ridgeline.graph.offline.model import composer_for
from ridgeline.graph.offline.rowwise.cpu.composer import RowwiseCpu
from ridgeline.graph.offline.rowwise.cpu.structures import Structure
from ridgeline.tools.errors import ModelError
from ridgeline.tools.records.vocabulary import Interface, ReasonCode

pytestmark = pytest.mark.long

SEED = Elite(candidate_id="seed-fused", idea_title="", source="// by hand", median_ms=1 / 1.3, speedup=1.3)


def propose(reference, *, round=1, count=4, **known):
    request = IdeationRequest(
        subject=subject_of(reference), baselines=BASELINES, round=round, count=count, rng_seed=1, **known
    )
    return IdeaList.model_validate_json(asyncio.run(OfflineModel().propose(request)).text).ideas


def write(reference, idea, **more):
    given = {"subject": subject_of(reference), "baselines": BASELINES, "idea": idea, "variation": 0, "rng_seed": 1}
    request = KernelRequest(**{**given, **more})
    return KernelDraft.model_validate_json(asyncio.run(OfflineModel().write(request)).text)


def tried(number, idea, speedup, parent=None):
    return TriedIdea(
        id=f"r1i{number}", title=idea.title, mechanism=idea.mechanism, category=idea.category, parent_id=parent,
        best_candidate_id=f"r1i{number}v0a0" if speedup else None, best_speedup=speedup, failure="" if speedup else "wrong",
        composition=idea.composition,
    )  # fmt: skip


def elite(number, idea, draft, speedup):
    return Elite(
        candidate_id=f"r1i{number}v0a0",
        idea_title=idea.title,
        source=draft.source,
        median_ms=1 / speedup,
        speedup=speedup,
    )


@pytest.fixture
def quickstart(references):
    return references["quickstart"]


@pytest.fixture
def after_a_round(quickstart):
    """Return tried ideas and elites of a first round in which speedups fell with the order of the ideas."""
    ideas = propose(quickstart, elites=(SEED,))
    speeds = [1.8, 1.5, 0.8, None]
    history = tuple(tried(i, idea, s, SEED.candidate_id) for i, (idea, s) in enumerate(zip(ideas, speeds, strict=True)))
    elites = tuple(elite(i, ideas[i], write(quickstart, ideas[i]), speeds[i]) for i in range(2))
    return ideas, history, (*elites, SEED)


def test_first_round_proposes_diverse_single_structures(quickstart):
    ideas = propose(quickstart)
    assert len({i.title for i in ideas}) == 4
    assert "polynomials" in ideas[0].title and ideas[0].predicted_gain > 1.1
    added = [frozenset(i.composition) - {Structure.KEEP} for i in ideas]
    assert all(len(a) == 1 for a in added) and len(set(added)) == 4


def test_an_idea_tells_its_reader_the_composition(quickstart):
    idea = propose(quickstart)[0]
    assert idea.mechanism.endswith(f"Composition: {', '.join(idea.composition)}.")


def test_base_by_itself_comes_after_what_should_improve_it(quickstart):
    ideas = propose(quickstart, count=60)
    bare = [set(i.composition) for i in ideas].index({Structure.KEEP})
    assert bare > 4 and "row's intermediate result" in ideas[bare].title


def test_proposals_are_deterministic(quickstart):
    assert propose(quickstart) == propose(quickstart)


def test_later_rounds_combine_what_worked_and_repeat_nothing(quickstart, after_a_round):
    ideas, history, elites = after_a_round
    later = propose(quickstart, round=2, tried=history, elites=elites)
    done = [set(i.composition) for i in ideas]
    assert all(set(i.composition) not in done for i in later)
    assert done[0] | done[1] <= set(later[0].composition)
    assert later[0].parent_id == elites[0].candidate_id
    disappointing, failed = done[2] - {Structure.KEEP}, done[3] - {Structure.KEEP}
    assert not any((disappointing | failed) & set(i.composition) for i in later)


def test_predicted_gain_is_over_the_parent_however_far_that_is_behind_the_best(quickstart, after_a_round):
    _, history, elites = after_a_round

    def predicted(best_speedup):
        ahead = (dataclasses.replace(elites[0], speedup=best_speedup), *elites[1:])
        later = propose(quickstart, round=2, count=60, tried=history, elites=ahead)
        return {idea.title: idea.predicted_gain for idea in later if idea.parent_id == elites[1].candidate_id}

    near, far = predicted(1.8), predicted(18.0)
    both = near.keys() & far.keys()
    assert both and {near[title] for title in both} == {far[title] for title in both}


def test_search_space_ends(quickstart):
    history = []
    for number in itertools.count(1):
        ideas = propose(quickstart, round=number, count=60, tried=tuple(history))
        if not ideas:
            break
        history += [tried(len(history) + i, idea, 1.2) for i, idea in enumerate(ideas)]
    assert 20 < len(history) == len({t.composition for t in history})


def test_what_an_idea_of_the_users_leads_to_is_not_proposed_beside_it_or_after_it(quickstart):
    words, composed = "prefetch the row that comes next", (Structure.KEEP, Structure.PREFETCH)
    (own,) = (idea for idea in propose(quickstart, count=20) if set(idea.composition) == set(composed))
    stated = own.model_copy(update={"title": words, "mechanism": words, "composition": None})
    assert structures_of(write(quickstart, stated).source) == set(composed)
    beside = propose(quickstart, count=20, user_ideas=("paint it blue", words))
    after = propose(quickstart, round=2, count=20, user_ideas=(words,), tried=(tried(0, stated, 0.99),))
    assert own.composition not in [idea.composition for idea in (*beside, *after)]
    assert any(Structure.PREFETCH in idea.composition for idea in after)


def test_written_source_has_the_idea_and_its_parents_structures(quickstart, after_a_round):
    _, history, elites = after_a_round
    idea = propose(quickstart, round=2, tried=history, elites=elites)[0]
    draft = write(quickstart, idea, parent=elites[0], second_parent=elites[1])
    assert structures_of(draft.source) == set(idea.composition)


def test_foreign_idea_is_mapped_by_its_words(quickstart):
    words = {"title": "Unroll", "mechanism": "use several accumulators", "composition": None}
    idea = propose(quickstart)[0].model_copy(update=words)
    assert Structure.LANES in structures_of(write(quickstart, idea).source)


def test_a_composition_of_structures_in_conflict_or_unknown_is_written_without_them(quickstart):
    stored = ("row-block", "accumulators", "prefetch", "of-another-version")
    idea = propose(quickstart)[0].model_copy(update={"composition": stored})
    assert structures_of(write(quickstart, idea).source) == {Structure.ROWS, Structure.PREFETCH}


def test_variations_differ(quickstart):
    for idea in propose(quickstart, count=8):
        sources = [write(quickstart, idea, variation=v).source for v in range(2)]
        assert sources[0] != sources[1]


def test_repair_drops_the_suspect_and_says_so(quickstart):
    idea = propose(quickstart)[0]
    failed = write(quickstart, idea).source
    draft = write(quickstart, idea, failed_source=failed, failure_code=ReasonCode.WRONG_VALUES)
    assert structures_of(failed) - structures_of(draft.source) == {Structure.POLY} and "poly-math" in draft.notes


@pytest.mark.parametrize(
    ("code", "dropped"), [(ReasonCode.CRASHED, Structure.KEEP), (ReasonCode.CALL_TIMEOUT, Structure.DYNAMIC)]
)
def test_repair_goes_by_the_code_whatever_the_words_say(quickstart, code, dropped):
    failed = header_line(RowwiseCpu(subject_of(quickstart)), (Structure.KEEP, Structure.DYNAMIC))
    words = "runtime_error (crashed): wrong, out of time: the memory was written"
    draft = write(quickstart, propose(quickstart)[0], failed_source=failed, failure=words, failure_code=code)
    assert {Structure.KEEP, Structure.DYNAMIC} - structures_of(draft.source) == {dropped}


def test_repair_of_a_bare_kernel_starts_over(quickstart):
    draft = write(quickstart, propose(quickstart)[0], failed_source="int main;", failure="compile error")
    assert structures_of(draft.source) == {Structure.KEEP}


@pytest.mark.parametrize("name", ["columns", "sorted"])
def test_uncovered_reference_is_a_model_error_with_ways_on(references, name):
    with pytest.raises(ModelError, match="OPENAI_API_KEY.*seeds:"):
        propose(references[name])


def test_refusal_names_operations_plainly_and_no_family_of_which_there_is_nothing(references):
    with pytest.raises(ModelError, match=r"not covered: the operation sort \(row-wise\)\. Two other ways") as caught:
        propose(references["sorted"])
    assert "convolution)" not in str(caught.value)


def test_refusal_names_what_a_family_lacks_and_not_that_another_one_is_named_for_it(references, convolutions):
    with pytest.raises(ModelError, match=r"not covered: the operation topk \(row-wise\)\."):
        propose(references["top"])
    with pytest.raises(ModelError, match=r"not covered: a convolution of 2 groups \(convolution\)\."):
        propose(convolutions["grouped"])


@pytest.mark.parametrize(
    ("source", "told"),
    [("torch.stack([x, x])", "stack"), ("torch.cat([x, x])", "cat"), ("torch.cat([stack, x])", "cat")],
)
def test_refusal_names_an_operation_as_the_reference_does(references, source, told):
    text = json.dumps(references["sorted"].description.reference_graph)
    assert "aten.sort.default" in text
    graph = json.loads(text.replace("aten.sort.default", "aten.cat.default"))
    described = dataclasses.replace(references["sorted"].description, reference_graph=graph)
    subject = dataclasses.replace(subject_of(references["sorted"]), description=described, reference_source=source)
    with pytest.raises(ModelError, match=rf"not covered: the operation {told} \("):
        composer_for(subject)


@pytest.mark.parametrize(
    ("internal", "public"),
    [
        ("_native_batch_norm_legit_no_training", "batch_norm"),
        ("native_group_norm", "group_norm"),
        ("_scaled_dot_product_flash_attention_for_cpu", "scaled_dot_product_attention"),
    ],
)
def test_refusal_names_an_operation_once_and_as_people_call_it(convolutions, internal, public):
    text = json.dumps(convolutions["square"].description.reference_graph)
    assert "aten.relu.default" in text
    graph = json.loads(text.replace("aten.relu.default", f"aten.{internal}.default"))
    described = dataclasses.replace(convolutions["square"].description, reference_graph=graph)
    with pytest.raises(ModelError, match=rf"not covered: the operation {public} \(row-wise, convolution\)\. Two other"):
        propose(dataclasses.replace(convolutions["square"], description=described))


@pytest.mark.parametrize("device", [CPU, HOPPER])
def test_interface_torch_is_not_covered(quickstart, device):
    subject = dataclasses.replace(subject_of(quickstart, device), interface=Interface.TORCH)
    with pytest.raises(ModelError, match="not covered: interface torch"):
        composer_for(subject)


def test_cuda_target_gets_cuda(quickstart):
    request = IdeationRequest(subject=subject_of(quickstart, HOPPER), baselines=BASELINES, round=1, count=3, rng_seed=0)
    ideas = IdeaList.model_validate_json(asyncio.run(OfflineModel().propose(request)).text).ideas
    draft = write(quickstart, ideas[0], subject=request.subject)
    assert len(ideas) == 3 and "__global__" in draft.source
    assert structures_of(draft.source) == set(ideas[0].composition)
