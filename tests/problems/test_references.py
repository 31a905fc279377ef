"""`references`: kernels of other operations that a problem names for models to see."""

from pathlib import Path

import pytest
from tests.problems.test_spec import MINIMAL, REFERENCE, load, message


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "reference.py").write_text(REFERENCE)
    (tmp_path / "blocks").mkdir()
    for name in ("gemm.cpp", "gemm.cu", "rows.py"):
        (tmp_path / "blocks" / name).write_text(f"// {name}\n")
    return tmp_path


def test_references_go_to_the_target_of_their_language_with_their_words(folder: Path) -> None:
    listed = "[{file: blocks/gemm.cpp, words: 88 % of the peak}, {file: blocks/gemm.cu}, {file: blocks/rows.py}]"
    spec = load(folder, f"{MINIMAL}references: {listed}\n")
    assert spec.reference_kernels("cpu") == [
        ("blocks/gemm.cpp", "88 % of the peak", "// gemm.cpp\n"), ("blocks/rows.py", "", "// rows.py\n")
    ]  # fmt: skip
    assert [name for name, _, _ in spec.reference_kernels("cuda")] == ["blocks/gemm.cu", "blocks/rows.py"]


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ("[blocks/gemm.cpp]", "references.0: must be a mapping, got 'blocks/gemm.cpp'"),
        ("[{file: blocks/none.cpp}]", "references: `blocks/none.cpp` is no file in "),
        ("[{file: blocks}]", "references: `blocks` is no file in "),
        ("[{file: ../gemm.cpp}]", "references: `../gemm.cpp` leaves the problem's folder"),
        ("[{file: /etc/passwd}]", "references: `/etc/passwd` leaves the problem's folder"),
        ("[{file: problem.yaml}]", "references: `problem.yaml` is no kernel; name a .cpp, .cu or .py file"),
        ("[{words: fast}]", "references.0.file: is missing; add it"),
        ("[{file: blocks/gemm.cpp, wrods: fast}]", "references.0.wrods: unknown key; did you mean `words`?"),
        ('["a\\0b"]', "references.0: must be a mapping"),
        ('[{file: "a\\0b.cpp"}]', "references: "),
    ],
)
def test_a_mistake_is_one_line(folder: Path, listed: str, said: str) -> None:
    assert said in message(folder, f"{MINIMAL}references: {listed}\n")


def test_a_reference_that_links_out_of_the_folder_is_refused(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.cpp"
    secret.write_text("// secret")
    (folder / "a.cpp").symlink_to(secret)
    assert "`a.cpp` is a link out of the problem's folder" in message(folder, MINIMAL + "references: [{file: a.cpp}]\n")
