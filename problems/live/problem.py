"""A problem folder made of a live module: its reference and its problem.yaml, written once and found again."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch
import yaml
from torch.utils import _pytree

from ridgeline.problems.files import as_words, read_text
from ridgeline.problems.live.program import (
    Argument,
    NotExportable,
    StrangeResult,
    arguments,
    check_tensors,
    dtype_name,
    exported,
    in_eval_mode,
    named,
)
from ridgeline.problems.live.reference_text import is_same_problem, reference_text
from ridgeline.problems.live.results import is_close, result_tensors
from ridgeline.problems.live.unchanged import ChangesOwn, unchanged
from ridgeline.problems.new import REFERENCE_NAME, own_tolerance, publish
from ridgeline.problems.spec import FILE_NAME, ProblemSpec, load_problem, parse_problem
from ridgeline.tools.errors import ProblemError

Module: TypeAlias = torch.nn.Module
"""For annotations where torch is not imported."""

_WHERE = "ProblemSpec.from_module"


def problem_of_module(module: object, example: object, keys: Mapping[str, Any], folder: object) -> ProblemSpec:
    """Return the problem in `folder`, written there if it is new.

    Args:
        module: a torch.nn.Module; its modes are left as they are.
        example: a tuple or list of `forward`'s arguments.
        keys: those of problem.yaml without `reference`.
        folder: the problem's own.

    Raises:
        ProblemError: one line says what cannot be used, and the remedy.
    """
    if not isinstance(module, torch.nn.Module):
        raise ProblemError(f"{_WHERE}: module must be a torch.nn.Module, got {as_words(module)}")
    if not isinstance(example, tuple | list):
        raise ProblemError(
            f"{_WHERE}: example_inputs must be a tuple of forward's arguments, got a {type(example).__name__}"
        )
    if not isinstance(folder, str | Path) or not str(folder):
        raise ProblemError(f"{_WHERE}: folder must be a path, got {as_words(folder)}")
    if "reference" in keys:
        raise ProblemError(f"{_WHERE}: reference: is written here; leave it out")
    path = Path(folder) / FILE_NAME
    stated = {**keys, "reference": REFERENCE_NAME}
    stated.setdefault("tolerance", "fp32")
    parse_problem(stated, Path(_WHERE))  # mistakes of the keys first: they cost nothing to find
    try:
        source, tolerance = _reference_of(module, example)
    except ProblemError as error:
        raise type(error)(f"{_WHERE}: {error}") from error.__cause__
    if "tolerance" not in keys:
        stated["tolerance"] = tolerance
    spec = parse_problem(stated, Path(_WHERE))
    try:
        if path.parent.exists() and any(path.parent.iterdir()):
            return _found(path, source, spec, keys)
        publish(path.parent, {REFERENCE_NAME: source, FILE_NAME: _yaml(spec, stated)})
    except OSError as error:
        raise ProblemError(f"{path.parent}: cannot be written ({error.strerror}); give another folder") from None
    return load_problem(path)


def _found(path: Path, source: str, spec: ProblemSpec, keys: Mapping[str, Any]) -> ProblemSpec:
    """Return the problem that is there already; ProblemError where it is another one."""
    if not path.is_file():
        raise ProblemError(f"{path.parent}: is there and holds no {FILE_NAME}; give a new folder")
    kept = load_problem(path)
    if not is_same_problem(read_text(path.parent / kept.reference, f"{path}: reference"), source):
        other = f"which is called {kept.name} too" if kept.name == spec.name else kept.name
        raise ProblemError(f"{path.parent}: holds another problem, {other}; give another folder, or remove this one")
    for key in keys:
        if getattr(kept, key) != getattr(spec, key):
            raise ProblemError(
                f"{path}: has another `{key}` than is asked for; change it there, or give another folder"
            )
    return kept


def _yaml(spec: ProblemSpec, stated: Mapping[str, Any]) -> str:
    keys = ["name", "reference", *(key for key in stated if key not in ("name", "reference"))]
    plain = spec.model_dump(mode="json", exclude_unset=True)
    text: str = yaml.safe_dump({key: plain[key] for key in keys}, sort_keys=False, allow_unicode=True)
    return f"# Made by ridgeline.ProblemSpec.from_module; every key: docs/problem.md\n{text}"


# ----------------------------------------------------------------------------------------------------------- reference


def _reference_of(module: torch.nn.Module, example: Sequence[Any]) -> tuple[str, str]:
    """Return the reference's source, once it gave what the module gives, and the class that its types ask for."""
    check_tensors(module)
    given = arguments(module, example)
    with in_eval_mode(module), torch.random.fork_rng(devices=[]):  # the reference draws weights and inputs
        refused: ProblemError | None = None
        expected: list[torch.Tensor] | None = None
        for program, fixed in _programs(module, given):
            for is_plain in (True, False):
                source = reference_text(module, program, fixed, is_plain=is_plain)
                expected = _given_by(module, given) if expected is None else expected
                try:
                    return source, _tolerance(module, given, _checked(source, module, given, expected))
                except NotExportable as error:
                    refused = error
    assert refused is not None  # noqa: S101  # there is one program at least
    raise refused


def _programs(
    module: torch.nn.Module, given: Sequence[Argument]
) -> Iterator[tuple[torch.export.ExportedProgram, tuple[Argument, ...]]]:
    """Give the program with numbers as arguments, where there are any and torch takes that; then with their values."""
    if any(isinstance(a.value, float) for a in given):
        # Where forward needs the number itself. What else is wrong, the next one says.
        with contextlib.suppress(NotExportable):
            yield exported(module, given, numbers_vary=True)
    try:
        program = exported(module, given, numbers_vary=False)
    except StrangeResult:
        _given_by(module, given)  # refuses the part by its place
        raise
    yield program


def _given_by(module: torch.nn.Module, given: Sequence[Argument]) -> list[torch.Tensor]:
    """Return the tensors that the module itself gives for the example.

    Raises:
        ProblemError: it fails on the example, changes its own state, or gives none that a kernel can write.
    """
    try:
        with unchanged(module):
            wanted = module(*_copies(given))
    except ChangesOwn:
        raise
    except (Exception, SystemExit) as error:
        # whatever the module's own forward raises
        raise ProblemError(f"forward fails on the example: {named(error)}") from error
    return result_tensors(wanted)


def _checked(
    source: str, module: torch.nn.Module, given: Sequence[Argument], expected: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Run a reference with the module's tensors on the example, and return its outputs, which are the `expected` ones.

    Raises:
        NotExportable: it gives anything else, or draws other inputs than those of the example.
    """
    written = types.ModuleType("ridgeline_reference")
    exec(compile(source, REFERENCE_NAME, "exec"), written.__dict__)  # noqa: S102  # the text of the caller's own module
    tensors = dict(module.named_parameters()) | dict(module.named_buffers())
    device = next(a.value.device for a in given if isinstance(a.value, torch.Tensor))
    try:
        drawn = written.get_inputs()
        model = written.Model().eval().to(device)
        got = torch.func.functional_call(model, tensors, _copies(given))
    except Exception as error:
        # an operation that takes other arguments by its short name than by its full one; of any type
        raise NotExportable(f"the exported program does not run: {named(error)}") from error
    if [_form(value) for value in drawn] != [_form(a.value) for a in given]:
        raise NotExportable("the reference draws inputs of other shapes or types than the example's")
    outputs = [t for t in _pytree.tree_leaves(got) if isinstance(t, torch.Tensor)]
    if len(outputs) != len(expected) or not all(map(is_close, outputs, expected)):
        raise NotExportable(
            "the exported program gives another result than the module: a result may not depend on chance or on calls"
        )
    return outputs


def _form(value: Any) -> tuple[Any, ...]:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype, value.stride() if value.numel() else ()
    return (type(value),)


def _copies(given: Sequence[Argument]) -> tuple[Any, ...]:
    """Return the arguments, with tensors that `forward` may write."""
    return tuple(a.value.clone() if isinstance(a.value, torch.Tensor) else a.value for a in given)


def _tolerance(module: torch.nn.Module, given: Sequence[Argument], outputs: Sequence[torch.Tensor]) -> str:
    """Return the class of the narrowest type: outputs of 16 bits cannot be closer than their own rounding."""
    tensors = [*(a.value for a in given if isinstance(a.value, torch.Tensor)), *module.parameters(), *outputs]
    is_double = any(t.dtype is torch.float64 for t in outputs)
    return own_tolerance({dtype_name(t.dtype) for t in tensors if is_double or t.dtype is not torch.float64})
