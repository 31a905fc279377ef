"""The prompts of a recorded search without its replay: kernels as long as language models write them, and their ideas.

    PYTHONPATH=src python benchmarks/recorded_prompts.py [RECORDING.jsonl]

prints the tokens of each request for ideas and of each first kernel. Problem, device's table, answers and eager's time are
the recorded ones. Figures, diagnoses and sweeps are made up, as long as real ones, and the four kernels that a round starts
from are those of the newest ideas. `prompt_sizes.py RUN` measures the prompts of a run, and so of a replay.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from prompt_sizes import tokens

from ridgeline.checkpoints.recording.file import read_recording
from ridgeline.checkpoints.recording.recording import Recording
from ridgeline.graph.models.prompts import render_request
from ridgeline.graph.models.replies import read_ideas, read_kernel
from ridgeline.graph.models.requests import Elite, IdeaDraft, IdeationRequest, KernelRequest, Subject, TriedIdea
from ridgeline.graph.search.context import subject_of
from ridgeline.graph.search.ideas.digest import digest
from ridgeline.tools.records.keys import CallId, attempt_id, idea_id
from ridgeline.tools.records.problem import DescribedTarget
from ridgeline.tools.records.vocabulary import IdeaOutcome, Interface, PrecisionClass

DEFAULT = Path(__file__).parent / "recordings" / "attention_causal.jsonl"
ELITES, IMPLEMENTATIONS = 4, 2
DIAGNOSIS = (
    "{ms:.4g} ms a call: the reference's arithmetic in that time is {share}% of this device's fp32 peak; a kernel that does "
    "fewer operations than the reference reaches less of it, and has more room. Its stages: values 53% (0.325 ms), scores "
    "41% (0.25 ms), exps 7% (0.0415 ms) (with clocks a call takes 1.7 x as long, so trust their order only). Vectorised "
    "with 512-bit registers (99% of the loops' floating-point instructions). 9 vector register spill(s) or reload(s) in "
    "innermost loops: too many live values; unroll less or split the loop."
)
SWEEP = (
    "FAR=8 KC=32: {0:.2f}x (4.64-5.91)", "FAR=16 KC=48: 4.68x (4.40-6.52)", "FAR=8 KC=48: 5.39x (3.63-6.45)",
    "FAR=0 KC=48: 4.62x (3.01-9.15)", "FAR=0 KC=32: 3.69x (2.85-6.17)", "as written: {0:.2f}x (5.68-6.12)",
    "3 slower points",
)  # fmt: skip
WRONG = (
    "wrong (precision_too_low) after 1 repair: row_scaled: a row's error 0.00034, gate 0.00025 (1.4 x): like tf32 "
    "arithmetic, or some work left out, and fp32 is required"
)


@dataclass(slots=True)
class Recorded:
    """What a recording tells of its search."""

    recording: Recording
    ideas: dict[str, IdeaDraft] = field(default_factory=dict)
    kernels: dict[str, str] = field(default_factory=dict)  # sources, by candidate

    @classmethod
    def read(cls, path: Path) -> Recorded:
        """Return the ideas and the whole kernels of a recording."""
        found = cls(recording=read_recording(path))
        for call in found.recording.calls:
            asked = CallId.read(call.call_id)
            if asked is None or call.reply is None:
                continue
            if asked.asks_for_ideas:
                drafts = read_ideas(str(call.reply["text"]))
                found.ideas |= {idea_id(asked.round, n): draft for n, draft in enumerate(drafts)}
            else:
                found.kernels[asked.candidate_id] = call.kernel or read_kernel(str(call.reply["text"])).source
        return found

    @property
    def subject(self) -> Subject:
        """Return the problem."""
        run = self.recording.run
        target = DescribedTarget(
            name=run.name, reference_source=run.reference_source, interface=Interface(run.problem["interface"]),
            tolerance=PrecisionClass(run.problem["tolerance"]), device=run.device, description=run.description,
        )  # fmt: skip
        return subject_of(target, run.facts)

    def best(self, idea: str) -> str:
        """Return the first kernel of an idea."""
        return attempt_id(idea, 0, 0)

    def elite(self, idea: str, place: int) -> Elite:
        """Return an idea's first kernel with figures of the given place in the ranking."""
        draft, speedup = self.ideas[idea], 5.8 - 0.4 * place
        return Elite(
            candidate_id=self.best(idea), idea_title=draft.title, source=self.kernels[self.best(idea)],
            median_ms=8.4 / speedup, speedup=speedup, speedup_ci95=(0.9 * speedup, 1.1 * speedup), idea_id=idea,
            diagnosis=DIAGNOSIS.format(ms=8.4 / speedup, share=67 - 4 * place), largest_stage="values",
            parent_id=draft.parent_id,
            sweep=tuple(row.format(speedup) for row in SWEEP),
        )  # fmt: skip

    def elites(self, round_: int) -> tuple[Elite, ...]:
        """Return the kernels that a round starts from: those of the newest ideas."""
        known = [idea for idea in self.ideas if _round(idea) < round_ and self.best(idea) in self.kernels]
        return tuple(self.elite(idea, place) for place, idea in enumerate(known[: -ELITES - 1 : -1]))

    def tried(self, round_: int) -> tuple[TriedIdea, ...]:
        """Return the ideas of the rounds before, as the search tells them to language models."""
        return digest([self._tried(idea) for idea in self.ideas if _round(idea) < round_], round_)

    def _tried(self, idea: str) -> TriedIdea:
        draft, place = self.ideas[idea], len(idea)
        return TriedIdea(
            id=idea, round=_round(idea), title=draft.title, mechanism=draft.mechanism, category=draft.category,
            parent_id=draft.parent_id, best_candidate_id=self.best(idea), best_speedup=4.9,
            predicted_gain=draft.predicted_gain, gain=0.93, outcome=IdeaOutcome.REFUTED,
            ends=(
                f"{self.best(idea)}: ok, 4.900x eager",
                f"{attempt_id(idea, 1, 1)}: {WRONG}",
            ),
            before=DIAGNOSIS.format(ms=1.7 + place, share=53), after=DIAGNOSIS.format(ms=1.9 + place, share=51),
            sweep=tuple(row.format(4.9) for row in SWEEP),
        )  # fmt: skip

    def ideation(self, round_: int) -> IdeationRequest:
        """Return a round's request for ideas."""
        baselines = self.recording.run.baselines
        return IdeationRequest(
            subject=self.subject, baselines=baselines if round_ > 1 else baselines.eager_only(), round=round_, count=4,
            rng_seed=7, tried=self.tried(round_), elites=self.elites(round_), implementations=IMPLEMENTATIONS,
        )  # fmt: skip

    def first_write(self, number: int, variation: int) -> KernelRequest:
        """Return the request for a kernel of the first round, which starts from none."""
        idea = self.ideas[idea_id(1, number)]
        return KernelRequest(
            subject=self.subject, baselines=self.recording.run.baselines.eager_only(), idea=idea, variation=variation,
            rng_seed=7, plan=idea.plans[variation],
        )  # fmt: skip


def _round(idea: str) -> int:
    return int(idea.removeprefix("r").partition("i")[0])


def main() -> None:
    """Print the sizes."""
    found = Recorded.read(Path(sys.argv[1]) if sys.argv[1:] else DEFAULT)
    rounds = 1 + max(_round(idea) for idea in found.ideas)
    for round_ in range(1, rounds + 1):
        print(f"ideas, round {round_}: {tokens(render_request(found.ideation(round_))):6.0f}")
    for number in range(sum(_round(idea) == 1 for idea in found.ideas)):
        first = [tokens(render_request(found.first_write(number, v))) for v in range(IMPLEMENTATIONS)]
        print(f"first kernels of idea {number}: {', '.join(f'{size:.0f}' for size in first)}")


if __name__ == "__main__":
    main()
