"""Problem files as checked, frozen values.

`load_problem` turns problem.yaml into a ProblemSpec or raises one ProblemError whose single line names the file, the
field and the remedy. The reference is read as text and never run here; only the judge does that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, FiniteFloat, PrivateAttr, ValidationError

from ridgeline.problems import names
from ridgeline.problems.blocks import ReferenceKernel
from ridgeline.problems.files import ProblemPlace, as_words, read_text, read_yaml
from ridgeline.problems.kernel_files import MODULE_SUFFIX, SOURCE_SUFFIX, matching_kernels, named_kernel, refuse_source
from ridgeline.problems.limits import MOST
from ridgeline.problems.mistakes import explain_mistake, refuse_together, rest_of
from ridgeline.problems.model_calls import CallSettings, PriceSettings, Section, Text
from ridgeline.problems.numbers import Version
from ridgeline.problems.syntax import names_float64, read_reference, substitute_sizes
from ridgeline.problems.targets import Size, TargetKind, TargetSettings, both_targets
from ridgeline.tools.errors import ProblemError

if TYPE_CHECKING:
    from ridgeline.problems.live.problem import Module

SCHEMA_VERSION = 1

# The words of tools/records/vocabulary.py, which this room may not import.
InterfaceName = Literal["c", "torch", "module"]
ToleranceClass = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "crfm"]
SearchPart = Literal["memory", "diagnosis", "recombination", "novelty", "tuning", "blocks"]

Positive = Annotated[FiniteFloat, Field(gt=0)]
CallTimeout = Annotated[FiniteFloat, Field(ge=0.1, le=3600)]  # a runner needs some 50 ms to start

FILE_NAME = "problem.yaml"
SHIPPED_FOLDER = Path(__file__).parent


class SearchSettings(Section):
    """How far the search goes."""

    rounds: int = Field(default=5, ge=1, le=MOST, description="Rounds of ideas before the search ends.")
    ideas: int = Field(default=4, ge=1, le=MOST, description="New ideas a round.")
    implementations: int = Field(default=2, ge=1, le=MOST, description="Kernels written for each idea, side by side.")
    repairs: int = Field(
        default=2, ge=0, le=MOST, description="Further attempts after a kernel fails, each shown the error."
    )
    strategy: Literal["branch", "revision"] = Field(
        default="branch",
        description="`branch`: many ideas a round; `revision`: one lineage, one idea at a time, no idea memory.",
    )
    elites: int = Field(default=4, ge=1, le=MOST, description="Fastest correct kernels that seed the next round.")
    tune_trials: int = Field(
        default=24,
        ge=0,
        le=MOST,
        description="Tunable values tried after a round, over all elites together; 0 turns tuning off.",
    )
    floor_margin: Annotated[FiniteFloat, Field(ge=0)] | None = Field(
        default=0.05, description="Stop within this fraction of the roofline floor; null never stops for it."
    )
    stall_rounds: Annotated[int, Field(ge=1)] | None = Field(
        default=3, description="Stop after this many rounds without a gain; null never stops for it."
    )
    without: list[SearchPart] = Field(
        default_factory=list, description="Parts that the search leaves out, to measure what each is worth."
    )


class Budget(Section):
    """What finding kernels may consume; what is absent is unlimited. The search stops, resumable, at the first reached.

    The certificate of what was found comes on top: docs/timing.md says what follows a spent budget, and how long it takes.
    """

    usd: Positive | None = Field(default=None, description="US dollars of model calls.")
    tokens: Annotated[int, Field(gt=0)] | None = Field(default=None, description="Input and output tokens together.")
    wall_s: Positive | None = Field(
        default=None, description="Seconds on the clock, from the first ideas to the last round."
    )
    gpu_s: Positive | None = Field(default=None, description="Seconds of GPU time.")


class ProblemSpec(Section):
    """A problem: a PyTorch module, what counts as the same result, and how to search."""

    schema_version: Version = Field(default=1, description="Version of this file format.")
    name: str = Field(pattern=names.PATTERN, description="Names the run folder: a-z, 0-9, `_` and `-`.")
    reference: Text = Field(
        description="A .py beside this file in KernelBench form: `Model`, `get_inputs`, optionally `get_init_inputs`."
    )
    interface: InterfaceName = Field(
        default="c",
        description="Form of a candidate: `c` plain native source, `torch` extension source, `module` Python file.",
    )
    tolerance: ToleranceClass = Field(
        default="fp32",
        description="Loosest precision class that is accepted. Absent: fp64 where the reference names float64, else fp32.",
    )
    targets: dict[TargetKind, TargetSettings] = Field(
        default_factory=both_targets,
        min_length=1,
        description="Device kinds the problem runs on, each with its sizes. Absent: both, with the reference's sizes.",
    )
    seeds: list[Text] = Field(
        default_factory=list, description="Globs of kernels to start from, relative to this file and inside its folder."
    )
    references: list[ReferenceKernel] = Field(
        default_factory=list,
        description="Kernels of other operations that models are shown as building blocks; they are never built or judged.",
    )
    ideas: list[Text] = Field(default_factory=list, description="Your own ideas in plain words, tried in round 1.")
    search: SearchSettings = Field(default_factory=SearchSettings, description="How far the search goes.")
    models: list[Text] = Field(
        default_factory=list, description="Models as `provider:name`, or `offline`; --model overrides."
    )
    model_calls: CallSettings = Field(default_factory=CallSettings, description="How a model is called.")
    budget: Budget = Field(default_factory=Budget, description="What the search may consume.")
    call_timeout_s: CallTimeout = Field(
        default=30.0,
        description="Longest single call of a kernel, in seconds; a kernel's whole evaluation may take 8 times it.",
    )
    prices: dict[str, PriceSettings] = Field(
        default_factory=dict, description="Prices of models that Ridgeline cannot know."
    )

    _path: Path = PrivateAttr(default_factory=Path)
    _given: Path = PrivateAttr(default_factory=Path)

    def __repr__(self) -> str:
        """Return on one line what is searched and where it lies; every setting is a field."""
        terms = f"interface {self.interface}, tolerance {self.tolerance}, targets {', '.join(self.targets)}"
        return f"<ProblemSpec {self.name}: {self.path.parent / self.reference}, {terms}>"

    __str__ = __repr__

    @classmethod
    def stated(cls, data: Mapping[str, Any], place: ProblemPlace) -> Self:
        """Return the problem that `data` states, as read from a place.

        Raises:
            ValidationError: `data` states none.
        """
        return cls.model_validate(data, context=place)

    def model_post_init(self, place: Any) -> None:
        """Take the place that `stated` names; it is none of the fields."""
        if isinstance(place, ProblemPlace):
            self._path, self._given = place.path, place.given

    def with_absolute_path(self) -> Self:
        """Return the problem, once its path is absolute: a run may be resumed from another folder."""
        self._path = self._path.absolute()
        return self

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, folder: Path | str = ".") -> ProblemSpec:
        """Return the checked problem that a mapping states with the keys of problem.yaml; nothing is written.

        `folder` is what `reference`, `seeds` and `references` are relative to. A search of it is resumed with the problem
        named again: no file says what it was.

        Raises:
            ProblemError: as `load_problem` does; its line begins with FOLDER/from_dict.
        """
        if not isinstance(data, Mapping):
            raise ProblemError(f"ProblemSpec.from_dict: must be a mapping, got {as_words(data)}")
        if not isinstance(folder, str | Path):
            raise ProblemError(f"ProblemSpec.from_dict: folder must be a path, got {as_words(folder)}")
        return _checked(data, Path(folder) / "from_dict")

    @classmethod
    def from_module(
        cls, module: Module, example_inputs: Sequence[Any], *, name: str, folder: Path | str, **keys: Any
    ) -> ProblemSpec:
        """Return the problem that a live module states, as a folder with a reference.py and a problem.yaml.

        The module is exported in eval mode on the example, and keeps its own mode; the example's shapes and types are the
        problem's, its values say how inputs are drawn. A folder that holds this problem already is used as it is.

        Args:
            module: any torch.nn.Module; kernels get its parameters and buffers, whose names it shares with the problem.
            example_inputs: a tuple of `forward`'s arguments: tensors, numbers, None.
            name: the problem's name.
            folder: the problem's own folder.
            keys: further keys of problem.yaml, all but `reference`.

        Raises:
            ProblemError: one line: torch cannot export the module, a key is wrong, or the folder holds something else.
        """
        from ridgeline.problems.live.problem import problem_of_module  # torch, which nothing else here needs

        return problem_of_module(module, example_inputs, {"name": name, **keys}, folder)

    @property
    def path(self) -> Path:
        """Return the problem file this came from; reference and seeds are relative to its folder."""
        return self._path

    @property
    def given(self) -> Path:
        """Return the path of the problem file as its reader gave it, for messages."""
        return self._given

    @property
    def reference_given(self) -> Path:
        """Return the path of the reference as the reader of the problem file would write it, for messages."""
        return self._given.parent / self.reference

    def reference_source(self, kind: str) -> str:
        """Return the reference with the target's sizes written in; read, never run.

        Raises:
            ProblemError: no such target, or the reference cannot be read or lacks a part.
        """
        return _source_with(self, self.target(kind).sizes, kind)

    def seed_sources(self, kind: str) -> list[tuple[str, str]]:
        """Return (stem, source) of each seed kernel for the target: .cpp on the CPU, .cu on CUDA, .py for a module.

        Raises:
            ProblemError: no such target, a glob without a match, or a seed that cannot be read.
        """
        suffix = self._suffix(kind)
        paths = [path for path in self.seed_paths() if path.suffix == suffix]
        twice = [stem for stem, n in Counter(path.stem for path in paths).items() if n > 1]
        if twice:
            raise ProblemError(f"{self.given}: seeds: two kernels are called `{twice[0]}{suffix}`; rename one")
        return [(path.stem, read_text(path, f"{self.given}: seeds")) for path in paths]

    def reference_kernels(self, kind: str) -> list[tuple[str, str, str]]:
        """Return (file, words, source) of each of `references` in this target's language, or in Python.

        Raises:
            ProblemError: no such target, or a file that is missing, outside the folder, no kernel source or unreadable.
        """
        self.target(kind)
        named = [(each, named_kernel(each.file, self.path)) for each in self.references]
        return [
            (each.file, each.words, read_text(path, f"{self.given}: references"))
            for each, path in named
            if path.suffix in (SOURCE_SUFFIX[kind], MODULE_SUFFIX)
        ]

    def seed_paths(self) -> list[Path]:
        """Return the files of all seed globs, each once, in the globs' order and sorted within a glob.

        Raises:
            ProblemError: a glob that matches nothing, leaves the folder, or names something that is no kernel source.
        """
        found: dict[Path, None] = {}
        for glob in self.seeds:
            for path in matching_kernels(glob, self.path):
                found[path] = None
        return list(found)

    def target(self, kind: str) -> TargetSettings:
        """Return the settings for this device kind.

        Raises:
            ProblemError: the problem does not name it.
        """
        for name, target in self.targets.items():
            if name == kind:
                return target
        raise ProblemError(
            f"{self.given}: targets: has no `{kind}`, only {', '.join(self.targets)}; add `{kind}: {{}}` to run there"
        )

    def _suffix(self, kind: str) -> str:
        self.target(kind)
        if self.interface == "module":
            return MODULE_SUFFIX
        return SOURCE_SUFFIX[kind]


_SECTIONS: dict[str, type[BaseModel]] = {
    "search": SearchSettings,
    "references": ReferenceKernel,
    "budget": Budget,
    "model_calls": CallSettings,
    "targets": TargetSettings,
    "prices": PriceSettings,
}


def load_problem(path: Path) -> ProblemSpec:
    """Return the checked problem: every field, the reference's parts, each target's sizes, each seed glob.

    Raises:
        ProblemError: one line that names the file, and of each mistake field and remedy.
    """
    if path.is_dir():
        path = path / FILE_NAME
    refuse_source(path)
    if not path.exists() and (beside := path.with_name(FILE_NAME)).is_file():
        raise ProblemError(f"{path}: does not exist; did you mean {beside}?")
    return _checked(read_yaml(path), path)


def _checked(data: Mapping[str, Any], path: Path) -> ProblemSpec:
    """Return the problem that a file states once the files that it names are checked; of mistakes tell both's together."""
    spec, mistakes = rest_of(data, ProblemSpec, ProblemPlace(path=path, given=path), _SECTIONS)
    refuse_together(path, _looks(spec) if spec else (), mistakes)
    assert spec is not None  # noqa: S101  # a mistake was refused
    return _with_own_tolerance(spec).with_absolute_path()


def _looks(spec: ProblemSpec) -> list[Callable[[], object]]:
    """Return what looks at the files that a problem names, each for a mistake of its own."""
    sizes = [partial(_source_with, spec, {n: v}, kind) for kind, t in spec.targets.items() for n, v in t.sizes.items()]
    files = (spec.reference_source, spec.seed_sources, spec.reference_kernels)
    return [*sizes, *(partial(look, kind) for kind in spec.targets for look in files)]


def _source_with(spec: ProblemSpec, sizes: Mapping[str, Size], kind: str) -> str:
    source, _ = read_reference(spec.path.parent / spec.reference, f"{spec.given}: reference", spec.reference_given)
    return substitute_sizes(source, sizes, f"{spec.given}: targets.{kind}.sizes")


def _with_own_tolerance(spec: ProblemSpec) -> ProblemSpec:
    """Return the problem with the tolerance that its reference asks for, where it states none."""
    if "tolerance" in spec.model_fields_set:
        return spec
    _, tree = read_reference(spec.path.parent / spec.reference, f"{spec.given}: reference", spec.reference_given)
    return spec.model_copy(update={"tolerance": "fp64"}) if names_float64(tree) else spec


def parse_problem(data: Mapping[str, Any], path: Path) -> ProblemSpec:
    """Return the problem that `data` states, as if it had been read from `path`; its files are not looked at.

    Raises:
        ProblemError: one line that names file, field and remedy.
    """
    try:
        return ProblemSpec.stated(data, ProblemPlace(path=path, given=path))
    except ValidationError as error:
        raise ProblemError(f"{path}: {explain_mistake(error.errors(), ProblemSpec, _SECTIONS)}") from None


def shipped_problems() -> dict[str, Path]:
    """Return the problem.yaml of each problem inside the package, by name."""
    return {path.parent.name: path for path in sorted(SHIPPED_FOLDER.glob(f"*/{FILE_NAME}"))}
