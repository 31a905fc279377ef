"""An agent's problem: what it is told of one that states none, of its own, and of what the host does not offer."""

from __future__ import annotations

import pytest
from tests.graph.library.agents.conftest import Bench

from ridgeline import InputError, evaluate_tool, search_tool
from ridgeline.graph.library.agents.offers import Offers

NO_PROBLEMS = [
    "root:x:0:0:SECRET:/root:/bin/sh\n",
    "- SECRET\n",
    "token: SECRET\nSECRET: 1\n",
    "SECRET: 1\nSECRET: 2\n",
    "name: [SECRET\n",
    "port: !!int SECRET\n",
    "the reference: SECRET\n",
]


@pytest.mark.parametrize("content", NO_PROBLEMS)
async def test_of_a_file_that_states_no_problem_an_agent_is_told_no_word(bench: Bench, content: str) -> None:
    for name in ("passwd", "problem.yaml"):
        (bench.folder / name).write_text(content)
    places = [bench.folder / "passwd", bench.folder / "problem.yaml", bench.folder]
    tools = [(search_tool(), {}), (evaluate_tool(), {"source": "// a kernel"})]
    said = [await tool.ainvoke(more | {"problem": str(place)}) for place in places for tool, more in tools]
    for words in said:
        assert "states no problem; write `name:` and `reference:` at least" in words
        assert "SECRET" not in words


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("name: mine\nreference: reference.py\nseed: x\n", "seed: unknown key; did you mean `seeds`"),
        (
            "{name: mine, 'reference': reference.py, interface: d}",
            "interface: must be one of c, torch, module, got 'd'",
        ),
        ("name: mine\nreference: reference.py\nseeds: [a\n", "not valid YAML"),
        (b"\xff\xfe", "is not UTF-8 text"),
    ],
)
def test_of_an_agents_own_problem_it_is_told_what_to_mend(bench: Bench, content: str | bytes, says: str) -> None:
    path = bench.folder / "mine.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert says in search_tool().invoke({"problem": str(path)})


@pytest.mark.parametrize(
    ("name", "says"),
    [("reference.py", "ridgeline new NAME --from"), ("kernel.cpp", "a kernel's source, not a problem")],
)
def test_of_a_reference_or_a_kernel_in_the_place_of_a_problem_an_agent_is_told_what_to_do(
    bench: Bench, name: str, says: str
) -> None:
    (bench.folder / name).write_text("SECRET")
    said = search_tool().invoke({"problem": str(bench.folder / name)})
    assert says in said and "SECRET" not in said


@pytest.mark.parametrize("named", ["toy\0", "\ud800", "a" * 5000])
def test_what_is_no_path_is_not_offered(bench: Bench, named: str) -> None:
    with pytest.raises(InputError, match="problem"):
        Offers.of([bench.problem]).find(named)


def test_the_host_alone_chooses_device_models_and_problems(bench: Bench) -> None:
    assert set(search_tool().args) == {"problem", "rounds", "resume", "show_source"}
    assert "quickstart" in search_tool().description
    assert search_tool(problems=["softmax"]).description.endswith("`problem` is softmax.")
    with pytest.raises(InputError, match="did you mean softmax"):
        search_tool(problems=["sofmax"])
    with pytest.raises(InputError, match="budget: must be a Budget"):
        search_tool(budget=5)  # type: ignore[arg-type]


def test_problems_that_are_offered_are_named_by_name_file_or_folder(bench: Bench) -> None:
    offers = Offers.of([bench.problem])
    assert [offers.find(name) for name in (None, "toy", bench.path, "problem")] == [bench.problem] * 4
    with pytest.raises(InputError, match="problem softmax: is not offered here; name one of toy"):
        offers.find("softmax")
