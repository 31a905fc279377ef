"""C++ for a row program: one loop over rows shared among threads, one inner loop for each sweep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ridgeline.graph.offline import arithmetic
from ridgeline.graph.offline.ir import Load, Output, RowProgram, Space, Value
from ridgeline.graph.offline.schedule import Plan, Reduction, Sweep, evaluated, make_plan
from ridgeline.graph.offline.structures import Choices, Structure
from ridgeline.tools.records import ArgKind, ArgSpec, Role, Signature

C_TYPES = {
    "float32": "float",
    "float16": "fp16",
    "bfloat16": "bf16",
    "bool": "bool",
    "int64": "int64_t",
    "int32": "int32_t",
    "uint8": "uint8_t",
}
SCALAR_TYPES = {"float64": "double", "int64": "int64_t", "bool": "bool"}
IDENTITY = {"sum": "0.0f", "prod": "1.0f", "max": "-__builtin_inff()", "min": "__builtin_inff()"}
OMP_OPERATOR = {"sum": "+", "prod": "*", "max": "max", "min": "min"}
INDENT = "  "
SHIFT_COLS = 16
"""One vector: as cheap as one element, and no single outlier."""


def emit(
    program: RowProgram, signature: Signature, structures: frozenset[Structure], choices: Choices | None = None
) -> str:
    """Return the whole source of a kernel with these structures; they must be compatible."""
    plan = make_plan(
        program,
        moments=Structure.MOMENTS in structures,
        online=Structure.ONLINE in structures,
        keep=Structure.KEEP in structures,
    )
    return _Emitter(plan=plan, signature=signature, structures=structures, choices=choices or Choices()).source()


@dataclass(slots=True, kw_only=True)
class _Emitter:
    plan: Plan
    signature: Signature
    structures: frozenset[Structure]
    choices: Choices
    pointers: dict[Load, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 1

    # ------------------------------------------------------------------------------------------------ structure

    def source(self) -> str:
        self._name_loads()
        body = self._body()
        native = arithmetic.sections(self._native_names("\n".join(body)))
        parts = [self._header(), native, self._prototype() + " {", *body, "}"]
        return "\n".join(p for p in parts if p) + "\n"

    def _has(self, structure: Structure) -> bool:
        return structure in self.structures

    @property
    def blocked(self) -> bool:
        return self._has(Structure.ROWS)

    def _native_names(self, body: str) -> list[str]:
        return [name for name in arithmetic.SECTION_NAMES if f"rl_{name}(" in body]

    def _header(self) -> str:
        program = self.plan.program
        lines = [f"// ridgeline-offline: {' '.join(s.value for s in Structure if s in self.structures)}".rstrip()]
        if self._has(Structure.NARROW):
            lines.append("// flags: -mprefer-vector-width=256")
        lines += ['#include "problem.h"', "", "#include <cmath>", "#include <cstdint>", ""]
        lines += [f"constexpr int64_t ROWS = {program.rows};", f"constexpr int64_t COLS = {program.cols};"]
        lines += self._tunables()
        return "\n".join(lines) + "\n"

    def _tunables(self) -> list[str]:
        program, choices = self.plan.program, self.choices
        # An inner loop that is not unrolled keeps its accumulators in memory: at most what the compiler unrolls.
        blocks = [b for b in (1, 2, 4) if program.rows % b == 0 and b * self.plan.buffers * program.cols <= 1 << 16]
        options = {
            Structure.ROWS: ("ROW_BLOCK", choices.row_block, blocks),
            Structure.LANES: ("LANES", choices.lanes, [2, 4, 8]),
            Structure.ONLINE: ("ONLINE_BLOCK", choices.online_block, [64, 256, 1024, 4096]),
            Structure.STREAM: ("STREAM_TILE", choices.stream_tile, [64, 256, 1024, 4096]),
            Structure.PREFETCH: ("PREFETCH_ROWS", choices.prefetch_rows, [1, 2, 4]),
            Structure.DYNAMIC: ("CHUNK", choices.chunk, [4, 16, 64]),
        }
        return [
            _tunable(
                name, value, [o for o in values if name not in ("ONLINE_BLOCK", "STREAM_TILE") or o < 2 * program.cols]
            )
            for structure, (name, value, values) in options.items()
            if self._has(structure)
        ]

    def _prototype(self) -> str:
        parameters = [_parameter(a) for a in self.signature.args if a.kind is not ArgKind.NONE]
        listed = ",\n    ".join([*parameters, "void*"])
        return f'extern "C" void run(\n    {listed})'

    def _body(self) -> list[str]:
        self._line("#pragma omp parallel")
        self._open("")
        for index in range(self.plan.buffers):
            self._line(f"alignas(64) float keep{index}[{'ROW_BLOCK * ' if self.blocked else ''}COLS];")
        if self._has(Structure.STREAM):
            for output in self._full_outputs():
                per_row = "ROW_BLOCK * " if self.blocked else ""
                self._line(f"alignas(64) {C_TYPES[output.dtype]} stage_{output.argument}[{per_row}STREAM_TILE];")
        kind = "dynamic, CHUNK" if self._has(Structure.DYNAMIC) else "static"
        self._line(f"#pragma omp for schedule({kind})")
        step = "first += ROW_BLOCK" if self.blocked else "++row"
        start = "first" if self.blocked else "row"
        self._open(f"for (int64_t {start} = 0; {start} < ROWS; {step})")
        self._row()
        self._close()
        if self._has(Structure.STREAM) and self._full_outputs():
            self._line("rl_stream_end();")
        self._close()
        return self.lines

    def _full_outputs(self) -> list[Output]:
        return [o for o in self.plan.program.outputs if o.value.space & Space.COL]

    def _row(self) -> None:
        self._row_pointers()
        if self._has(Structure.PREFETCH):
            self._prefetch()
        self._row_values(0)
        for index, sweep in enumerate(self.plan.sweeps):
            self._sweep(sweep)
            self._row_values(index + 1)
        self._row_outputs()

    # ------------------------------------------------------------------------------------- per-row declarations

    def _per_row(self) -> str:
        """Open a loop over the rows of a block (nothing without blocks) and return the index suffix."""
        if self.blocked:
            self._line("#pragma GCC unroll 8")
            self._open("for (int64_t q = 0; q < ROW_BLOCK; ++q)")
            self._line("const int64_t row = first + q;")
        return self._suffix

    def _end_per_row(self) -> None:
        if self.blocked:
            self._close()

    @property
    def _suffix(self) -> str:
        return "[q]" if self.blocked else ""

    @property
    def _array(self) -> str:
        return "[ROW_BLOCK]" if self.blocked else ""

    def _name_loads(self) -> None:
        counts: dict[str, int] = {}
        for value in self.plan.program.values():
            if value.load is not None:
                load = value.load
                counts[load.argument] = counts.get(load.argument, 0) + 1
                again = f"_{counts[load.argument]}" if counts[load.argument] > 1 else ""
                self.pointers[load] = f"{load.argument}_at{again}"

    def _row_pointers(self) -> None:
        loads = [(load, name) for load, name in self.pointers.items()]
        outputs = [(o.argument, C_TYPES[o.dtype]) for o in self._full_outputs()]
        if self.blocked:
            for load, name in loads:
                self._line(f"const {C_TYPES[load.dtype]}* {name}[ROW_BLOCK];")
            for argument, ctype in outputs:
                self._line(f"{ctype}* {argument}_to[ROW_BLOCK];")
        suffix = self._per_row()
        for load, name in loads:
            declared = "" if self.blocked else f"const {C_TYPES[load.dtype]}* "
            self._line(f"{declared}{name}{suffix} = {load.argument}_data + {_row_offset(load)};")
        for argument, ctype in outputs:
            declared = "" if self.blocked else f"{ctype}* "
            self._line(f"{declared}{argument}_to{suffix} = {argument}_data + row * COLS;")
        self._end_per_row()

    def _prefetch(self) -> None:
        """Ask for the same part of a later row; past the last row a prefetch is ignored."""
        block = "ROW_BLOCK" if self.blocked else "1"
        for load, name in self.pointers.items():
            if load.row_terms and load.col_stride == 1:
                start = f"{name}[0]" if self.blocked else name
                size = f"static_cast<int64_t>(sizeof({C_TYPES[load.dtype]}))"
                ahead = f"PREFETCH_ROWS * {block} * {load.row_terms[0][2]} * {size}"
                self._open(f"for (int64_t byte = 0; byte < {block} * COLS * {size}; byte += 64)")
                self._line(f"__builtin_prefetch(reinterpret_cast<const char*>({start}) + {ahead} + byte);")
                self._close()

    def _row_values(self, level: int) -> None:
        """Compute what is known once a row before the sweep numbered `level`."""
        ready = [
            v
            for v in self.plan.row_values
            if self.plan.level[v.id] == level
            and v.op not in arithmetic.REDUCTION_OPS
            and v.op != "literal"
            and not self._is_const_scalar(v)
        ]
        pending = [v for v in ready if v.id not in self._early]
        if not pending:
            return
        for value in pending:
            if self.blocked:
                self._line(f"{value.ctype} v{value.id}[ROW_BLOCK];")
        suffix = self._per_row()
        for value in pending:
            declared = "" if self.blocked else f"const {value.ctype} "
            self._line(f"{declared}v{value.id}{suffix} = {self._expression(value)};")
        self._end_per_row()

    def _is_const_scalar(self, value: Value) -> bool:
        return value.op == "scalar"

    @property
    def _early(self) -> set[int]:
        """Return what an online reduction already needed: its shift and what that is made of."""
        shifts = [r.shift for s in self.plan.sweeps for r in s.reductions if r.shift is not None]
        return {v.id for shift in shifts for v in self._row_chain(shift)}

    def _row_chain(self, value: Value) -> list[Value]:
        """Return the per-row values made from an online maximum, in order, up to `value`."""
        level = self.plan.level[value.id]
        found: dict[int, Value] = {}
        stack = [value]
        while stack:
            current = stack.pop()
            is_inner = not current.is_leaf and current.op not in arithmetic.REDUCTION_OPS
            if is_inner and self.plan.level[current.id] == level and current.id not in found:
                found[current.id] = current
                stack.extend(current.args)
        return [found[i] for i in sorted(found)]

    def _row_outputs(self) -> None:
        per_row = [o for o in self.plan.program.outputs if not o.value.space & Space.COL]
        if per_row:
            self._per_row()
            for output in per_row:
                self._line(f"{output.argument}_data[row] = {self._stored(output)};")
            self._end_per_row()

    # ---------------------------------------------------------------------------------------------------- sweeps

    def _sweep(self, sweep: Sweep) -> None:
        online = [r for r in sweep.reductions if r.kind == "online"]
        rest = [r for r in sweep.reductions if r.kind != "online"]
        kept_in_rest = sweep.keeps
        for reduction in online:
            self._online(reduction, sweep)
        if rest or sweep.stores or (kept_in_rest and not online):
            self._plain_sweep(rest, sweep)

    def _plain_sweep(self, reductions: list[Reduction], sweep: Sweep) -> None:
        for reduction in reductions:
            self._declare_accumulators(reduction, sweep)
        stores = bool(sweep.stores)
        if self._has(Structure.STREAM) and stores:
            self._tiled(reductions, sweep)
        elif self._has(Structure.LANES) and reductions and not stores:
            self._laned(reductions, sweep)
        else:
            self._open_columns("int64_t j = 0; j < COLS; ++j", reductions)
            self._column(reductions, sweep, to="{argument}_to" + self._suffix + "[j]")
            self._close_columns()
        for reduction in reductions:
            self._finish(reduction)

    def _open_columns(self, loop: str, reductions: list[Reduction]) -> None:
        if not self.blocked:
            clauses = _omp_clauses(reductions)
            self._line(f"#pragma omp simd{clauses}")
        else:
            self._line("#pragma GCC ivdep")
        self._open(f"for ({loop})")
        if self.blocked:
            self._line("#pragma GCC unroll 8")
            self._open("for (int64_t q = 0; q < ROW_BLOCK; ++q)")

    def _close_columns(self) -> None:
        if self.blocked:
            self._close()
        self._close()

    def _tiled(self, reductions: list[Reduction], sweep: Sweep) -> None:
        """Fill a tile in the first-level cache, then write it past the caches."""
        self._open("for (int64_t tile = 0; tile < COLS; tile += STREAM_TILE)")
        self._line("const int64_t width = COLS - tile < STREAM_TILE ? COLS - tile : STREAM_TILE;")
        self._open_columns("int64_t i = 0; i < width; ++i", reductions)
        self._line("const int64_t j = tile + i;")
        row = "q * STREAM_TILE + " if self.blocked else ""
        self._column(reductions, sweep, to=f"stage_{{argument}}[{row}i]")
        self._close_columns()
        suffix = self._per_row()
        for output in sweep.stores:
            name = output.argument
            start = f"stage_{name}" + (" + q * STREAM_TILE" if self.blocked else "")
            size = f"static_cast<int64_t>(sizeof({C_TYPES[output.dtype]}))"
            self._line(f"rl_stream({name}_to{suffix} + tile, {start}, width * {size});")
        self._end_per_row()
        self._close()

    def _laned(self, reductions: list[Reduction], sweep: Sweep) -> None:
        """Walk several segments of the row side by side, each with an accumulator of its own."""
        self._line("#pragma GCC ivdep")
        self._open("for (int64_t i = 0; i < COLS / LANES; ++i)")
        self._line("#pragma GCC unroll 8")
        self._open("for (int64_t lane = 0; lane < LANES; ++lane)")
        self._line("const int64_t j = lane * (COLS / LANES) + i;")
        self._column(reductions, sweep, to="", lane="[lane]")
        self._close()
        self._close()
        self._open("for (int64_t j = COLS / LANES * LANES; j < COLS; ++j)")
        self._column(reductions, sweep, to="", lane="[0]")
        self._close()

    def _column(self, reductions: list[Reduction], sweep: Sweep, *, to: str, lane: str = "") -> None:
        """Emit what one column of one row needs."""
        roots = [r.expression for r in reductions] + [o.value for o in sweep.stores]
        self._evaluate(roots, sweep)
        suffix = self._suffix + lane
        for reduction in reductions:
            self._accumulate(reduction, suffix)
        for output in sweep.stores:
            self._line(f"{to.format(argument=output.argument)} = {self._stored(output)};")

    def _evaluate(self, roots: Iterable[Value], sweep: Sweep) -> None:
        for value in evaluated(roots, sweep.reuses):
            if value.id in sweep.reuses:
                text = f"keep{sweep.reuses[value.id]}[{self._keep_index}]"
            else:
                text = self._expression(value)
            self._line(f"const {value.ctype} v{value.id} = {text};")
            if value.id in sweep.keeps:
                self._line(f"keep{sweep.keeps[value.id]}[{self._keep_index}] = v{value.id};")

    @property
    def _keep_index(self) -> str:
        return "q * COLS + j" if self.blocked else "j"

    # ------------------------------------------------------------------------------------------------ reductions

    def _accumulators(self, reduction: Reduction) -> list[tuple[str, str]]:
        target = reduction.target.id
        if reduction.kind == "moments":
            return [(f"first{target}", "sum"), (f"second{target}", "sum")]
        return [(f"acc{target}", reduction.kind)]

    def _lanes(self, sweep: Sweep) -> bool:
        return self._has(Structure.LANES) and not sweep.stores

    def _declare_accumulators(self, reduction: Reduction, sweep: Sweep) -> None:
        if reduction.kind == "moments":
            self._shift(reduction, sweep)
        for name, kind in self._accumulators(reduction):
            if not self.blocked and not self._lanes(sweep):
                self._line(f"float {name} = {IDENTITY[kind]};")
                continue
            count = "ROW_BLOCK" if self.blocked else "LANES"
            self._line(f"float {name}[{count}];")
            self._line(f"for (int64_t q = 0; q < {count}; ++q) {name}[q] = {IDENTITY[kind]};")

    def _shift(self, reduction: Reduction, sweep: Sweep) -> None:
        """Take the mean of the row's first elements as the origin, so that squares do not cancel."""
        target = reduction.target.id
        count = min(SHIFT_COLS, self.plan.program.cols)
        self._line(f"float shift{target}{self._array};")
        self._per_row()
        if not self.blocked:
            self._open("")
        self._line("float start = 0.0f;")
        self._line("#pragma omp simd reduction(+ : start)")
        self._open(f"for (int64_t j = 0; j < {count}; ++j)")
        self._evaluate([reduction.expression], Sweep(reuses=sweep.reuses))
        self._line(f"start += {self._name(reduction.expression)};")
        self._close()
        self._line(f"shift{target}{self._suffix} = start * {arithmetic.literal(1.0 / count)};")
        self._close()

    def _accumulate(self, reduction: Reduction, suffix: str) -> None:
        value, target = self._name(reduction.expression), reduction.target.id
        if reduction.kind == "moments":
            self._line(f"const float away{target} = {value} - shift{target}{self._suffix};")
            self._line(f"first{target}{suffix} += away{target};")
            self._line(f"second{target}{suffix} += away{target} * away{target};")
            return
        name = f"acc{target}{suffix}"
        self._line(_combined(reduction.kind, name, value))

    def _finish(self, reduction: Reduction) -> None:
        """Turn accumulators into the reduction's per-row value."""
        target = reduction.target
        for value in [target, *([reduction.companion] if reduction.companion is not None else [])]:
            if self.blocked:
                self._line(f"float v{value.id}[ROW_BLOCK];")
        lanes = self._lanes_used(reduction)
        for name, kind in self._accumulators(reduction) if lanes else []:
            self._line(f"for (int64_t lane = 1; lane < LANES; ++lane) {_combined(kind, name + '[0]', name + '[lane]')}")
        suffix = self._per_row()
        at = suffix or ("[0]" if lanes else "")
        declared = "" if self.blocked else "const float "
        number = target.id
        if reduction.kind != "moments":
            self._line(f"{declared}v{number}{suffix} = acc{number}{at};")
        else:
            inverse = arithmetic.literal(1.0 / self.plan.program.cols)
            spread = f"second{number}{at} - first{number}{at} * first{number}{at} * {inverse}"
            self._line(f"{declared}v{number}{suffix} = std::fmax({spread}, 0.0f);")
            if reduction.companion is not None:
                total = f"{arithmetic.literal(self.plan.program.cols)} * shift{number}{suffix} + first{number}{at}"
                self._line(f"{declared}v{reduction.companion.id}{suffix} = {total};")
        self._end_per_row()

    def _lanes_used(self, reduction: Reduction) -> bool:
        owner = next(s for s in self.plan.sweeps if reduction in s.reductions)
        return self._lanes(owner)

    def _online(self, reduction: Reduction, sweep: Sweep) -> None:
        """Accumulate a maximum and the sum of exp(x - maximum) block by block, rescaling when the maximum grows."""
        target, operand, largest = reduction.target.id, reduction.expression, reduction.companion
        if largest is None or reduction.shift is None:
            raise ValueError("an online reduction needs its maximum and its shift")
        exp = self._function("exp")
        self._line(f"float top{target} = -__builtin_inff(), origin{target} = 0.0f, total{target} = 0.0f;")
        self._open("for (int64_t block = 0; block < COLS; block += ONLINE_BLOCK)")
        self._line("const int64_t end = block + ONLINE_BLOCK < COLS ? block + ONLINE_BLOCK : COLS;")
        self._line(f"float peak = top{target};")
        self._line("#pragma omp simd reduction(max : peak)")
        self._open("for (int64_t j = block; j < end; ++j)")
        self._evaluate([operand], sweep)
        self._line(f"peak = {self._name(operand)} > peak ? {self._name(operand)} : peak;")
        self._close()
        self._open(f"if (peak > top{target})")
        self._line("// an infinite maximum would make exp(inf - inf) of every element")
        self._line("const float origin = std::isinf(peak) ? 0.0f : peak;")
        self._line(f"total{target} = total{target} == 0.0f ? 0.0f : total{target} * {exp}(origin{target} - origin);")
        self._line(f"top{target} = peak;")
        self._line(f"origin{target} = origin;")
        self._close()
        self._line("float part = 0.0f;")
        self._line("#pragma omp simd reduction(+ : part)")
        self._open("for (int64_t j = block; j < end; ++j)")
        again = Sweep(reuses=sweep.reuses | sweep.keeps)
        self._evaluate([operand], again)
        self._line(f"part += {exp}({self._name(operand)} - origin{target});")
        self._close()
        self._line(f"total{target} += part;")
        self._close()
        self._line(f"const float v{largest.id} = top{target};")
        for value in self._row_chain(reduction.shift):
            self._line(f"const {value.ctype} v{value.id} = {self._expression(value)};")
        shift = self._name(reduction.shift)
        self._line(f"const float v{target} = total{target} * std::exp(origin{target} - {shift});")

    # ----------------------------------------------------------------------------------------------- expressions

    def _function(self, op: str) -> str:
        return arithmetic.function(op, inline=self._has(Structure.POLY))

    def _expression(self, value: Value) -> str:
        if value.load is not None:
            return self._loaded(value.load)
        names = [self._name(a) for a in value.args]
        return arithmetic.expression(value.op, names, inline=self._has(Structure.POLY))

    def _loaded(self, load: Load) -> str:
        stride = load.col_stride
        index = "0" if stride == 0 else "j" if stride == 1 else f"j * {stride}"
        text = f"{self.pointers[load]}{self._suffix}[{index}]"
        if load.dtype in ("float32", "bool"):
            return text
        return f"static_cast<{'float' if 'float' in load.dtype else 'int64_t'}>({text})"

    def _name(self, value: Value) -> str:
        if value.op == "literal":
            return arithmetic.literal(float(value.literal), value.ctype)
        if value.op == "scalar":
            return f"static_cast<{value.ctype}>({value.literal}_value)"
        return f"v{value.id}" + ("" if value.space & Space.COL else self._suffix)

    def _stored(self, output: Output) -> str:
        name = self._name(output.value)
        ctype = C_TYPES[output.dtype]
        return name if ctype == output.value.ctype else f"static_cast<{ctype}>({name})"

    # --------------------------------------------------------------------------------------------------- writing

    def _line(self, text: str) -> None:
        self.lines.append(text if text.startswith("#") else INDENT * self.depth + text)

    def _open(self, head: str) -> None:
        self._line(f"{head} {{".lstrip())
        self.depth += 1

    def _close(self) -> None:
        self.depth -= 1
        self._line("}")


def _tunable(name: str, value: int, values: list[int]) -> str:
    chosen = value if value in values else values[-1]
    return f"constexpr int64_t {name} = {chosen};  // tune: {name} = {' | '.join(map(str, values))}"


def _parameter(arg: ArgSpec) -> str:
    if arg.kind is ArgKind.SCALAR:
        return f"{SCALAR_TYPES[arg.dtype]} {arg.name}_value"
    const = "" if arg.role is Role.OUTPUT else "const "
    ctype = C_TYPES.get(arg.dtype, {"float64": "double", "int8": "int8_t", "int16": "int16_t"}.get(arg.dtype, "void"))
    return f"{const}{ctype}* __restrict__ {arg.name}_data"


def _row_offset(load: Load) -> str:
    terms = [str(load.offset)] if load.offset or not load.row_terms else []
    for divisor, size, stride in load.row_terms:
        index = "row" if divisor == 1 else f"row / {divisor}"
        is_outermost = len(load.row_terms) == 1 and divisor == 1
        terms.append(f"{index} * {stride}" if is_outermost else f"{index} % {size} * {stride}")
    return " + ".join(terms)


def _omp_clauses(reductions: list[Reduction]) -> str:
    clauses = ""
    for reduction in reductions:
        if reduction.kind == "moments":
            clauses += f" reduction(+ : first{reduction.target.id}, second{reduction.target.id})"
        else:
            clauses += f" reduction({OMP_OPERATOR[reduction.kind]} : acc{reduction.target.id})"
    return clauses


def _combined(kind: str, name: str, value: str) -> str:
    if kind in ("sum", "prod"):
        return f"{name} {'+' if kind == 'sum' else '*'}= {value};"
    return f"{name} = {value} {'>' if kind == 'max' else '<'} {name} ? {value} : {name};"
