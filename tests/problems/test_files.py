"""Files that are no text, no YAML or no files at all: one line each, at once."""

import os
from pathlib import Path

import pytest

from ridgeline.problems.files import LARGEST_BYTES, LARGEST_YAML_CHARS, read_text, read_yaml
from ridgeline.problems.new import new_problem
from ridgeline.problems.spec import load_problem
from ridgeline.tools.errors import ProblemError

REFERENCE = (
    "from torch import nn, randn\nN = 4\nclass Model(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
    "def get_inputs():\n    return [randn(N)]\n"
)
# each merges the one before it nine times
NINEFOLD = b"".join(b"a%d: &a%d {<<: [%s]}\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12))


def says(path: Path) -> str:
    with pytest.raises(ProblemError) as caught:
        read_yaml(path)
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message
    return message


@pytest.mark.parametrize(
    ("content", "remark"),
    [
        (b"name: a\0b", "#x0000"),
        (b"\xff\xfen\x00", "not UTF-8"),
        (b"a: 2020-13-45", "month must be in 1..12"),
        (b"a: " + b"9" * 5000, "4300 digits"),
        (b"a: " + b"[" * 5000 + b"]" * 5000, "nested too deeply"),
        (b"a: !!python/object/apply:os.system ['true']", "constructor"),
        (b"a: 1\n---\nb: 2", "another document"),
        (b"a: *b", "undefined alias"),
        (b"\na: !!bool x", "line 2: not valid YAML: 'x' is no bool; mend it"),
        (b"a: !!timestamp 9", "line 1: not valid YAML: '9' is no timestamp"),
        (
            b"a: 1\nb: {{c: 1}\n",
            "line 2: not valid YAML: what begins here does not end: expected ',' or '}', but got '<str",
        ),
        (
            b"a: {b: 1\n\nc: 2\n",
            "line 3: not valid YAML: expected ',' or '}', but got ':', in what begins on line 1; mend it",
        ),
        (
            b"a: 1\nb: 'c\n",
            "line 2: not valid YAML: what begins here does not end: found unexpected end of stream; mend",
        ),
        (b"a: 1\nb: {c: {\n", "line 2: not valid YAML: expected the node content, but found '<stream end>'"),
        (b"a0: &a0 {k: 1}\n" + NINEFOLD, "more than 10000 keys"),
    ],
)
def test_what_is_no_yaml_gives_one_line(content: bytes, remark: str, tmp_path: Path) -> None:
    path = tmp_path / "problem.yaml"
    path.write_bytes(content)
    assert remark in says(path)


def test_a_yaml_that_takes_its_parser_minutes_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "problem.yaml"
    path.write_text("ideas:\n" + "- x\n" * LARGEST_YAML_CHARS)
    with pytest.raises(ProblemError, match=r"has \d+ characters, more than 256 Ki characters; leave some out$"):
        read_yaml(path)


def test_a_merged_mapping_may_have_keys_that_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "problem.yaml"
    path.write_text("a: &a {x: 1, y: 1}\nb: {inner: &b {<<: *a, x: 2}}\nc: {<<: *b, y: 3}\n")
    assert read_yaml(path) == {"a": {"x": 1, "y": 1}, "b": {"inner": {"x": 2, "y": 1}}, "c": {"x": 2, "y": 3}}


def test_a_path_with_a_line_break_is_shown_on_one_line(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"a\\nb' does not exist; mend the path"):
        read_text(tmp_path / "a\nb", "it")


def test_line_ends_of_every_system_and_a_byte_order_mark_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "text"
    for content in (b"a\nb\n", b"a\r\nb\r\n", b"a\rb\r", b"\xef\xbb\xbfa\nb\n"):
        path.write_bytes(content)
        assert read_text(path, "it") == "a\nb\n"


def test_a_pipe_a_device_a_folder_a_loop_and_a_core_dump_are_no_text(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    with (tmp_path / "dump").open("wb") as dump:
        dump.truncate(LARGEST_BYTES + 1)
    for name, remark in (
        ("pipe", "is not a file"),
        ("device", "is not a file"),
        ("folder", "folder is a folder; name a file"),
        ("loop", "symbolic links"),
        ("dump", "larger than 32 MiB"),
    ):
        assert remark in says(tmp_path / name)
    with pytest.raises(ProblemError, match=r"'a\\x00b' is no path"):
        read_text(Path("a\0b"), "it")


@pytest.mark.parametrize(
    "tail",
    ["x = " + "-" * 100_000 + "1\n", "x = " + "+".join(["1"] * 100_000) + "\n", "x = N" + ".real" * 20_000 + "\n"],
)
def test_a_reference_beyond_the_parsers_depth_gives_one_line_and_no_folder(tail: str, tmp_path: Path) -> None:
    reference = tmp_path / "reference.py"
    reference.write_text(REFERENCE + tail)
    with pytest.raises(ProblemError, match="reference.py: an expression is nested too deeply"):
        new_problem("deep", reference, tmp_path / "out")
    assert not (tmp_path / "out" / "deep").exists()


@pytest.mark.parametrize(
    ("keys", "remark"),
    [
        ("seeds: ['**x/[']", r"seeds: `\*\*x/\[` is no glob"),
        ("search: {rounds: 99999999999999999999}", "search.rounds: must be less than or equal to 1000000"),
        ("search: &s {rounds: *s}", "search.rounds: must be a whole number"),
    ],
)
def test_values_beyond_reason_are_refused_before_anything_starts(keys: str, remark: str, tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    path = tmp_path / "problem.yaml"
    path.write_text(f"name: p\nreference: reference.py\n{keys}\n")
    with pytest.raises(ProblemError, match=remark):
        load_problem(path)
