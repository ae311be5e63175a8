#!/usr/bin/env python3
"""Lists the calls on hot paths that read a tensor's values on the host or create a tensor there, each with its reason.

    tools/host_reads.py            prints the list
    tools/host_reads.py --check    fails if a call has no reason in tools/host_reads.json, or a reason has no call
    tools/host_reads.py --seen F   prints waits of a run on the stand-in with STAND_IN_WAITS=F whose function has no such call

On an accelerator such a call makes Python wait for the device, or moves memory. The list comes from the source, so it also names calls
whose tensor is always on the host, as the reason then states. The stand-in accelerator (tests/stand_in) counts the waits of a program.
"""
from __future__ import annotations

import argparse
import ast
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "torchspore"
TABLE = ROOT / "tools" / "host_reads.json"

HOT = ("distributed/", "engine/", "export/", "graph/", "mindspore/", "observe/")
"""The packages that handle tensors."""
COLD = {
    "mindspore/dataset": "a data pipeline works on NumPy arrays of the host",
    "mindspore/mindrecord": "files",
    "mindspore/profiler": "runs after the measurement",
    "mindspore/train/summary": "files",
    "mindspore/train/metrics": "a metric computes with NumPy arrays, as MindSpore's do",
    "mindspore/train/checkpoint_tools.py": "files",
    "mindspore/installation.py": "the check that a program calls once",
    "mindspore/rewrite": "changes source text",
    "observe/debug": "a dump, a print to a file or a replay has to read values",
    "export": "files",
    "observe/profiling": "runs after the measurement",
    "graph/save_graphs": "files",
    "export/safetensors_files.py": "files",
    "engine/execution/print_file.py": "a print to a file has to read values",
    "engine/random": "the host draws the CPU's random numbers; accelerators draw theirs themselves",
}
"""Parts of the packages of HOT whose calls are not on a hot path, and why."""
READS = {"item", "tolist", "cpu", "numpy", "is_nonzero"}
SIZES = {"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount"}
"""Functions whose result has a size, or is a bool, that depends on values."""
CREATES = {"tensor", "as_tensor", "from_numpy"}
CONVERSIONS = {"bool", "int", "float"}
NUMPY = {"np", "numpy", "real"}

NOT_IN_TEXT = {
    "data size": (
        "mindspore/ops/arrays/indexing.py::part_of", "mindspore/ops/arrays/indexing.py::setitem",
        "mindspore/ops/sparse_formats/sparse_tensors.py::coo_add", "mindspore/ops/sparse_formats/coo_primitives.py::sparse_add_op",
        "mindspore/numpy/array_ops.py::repeat",
    ),
    "length": (
        "mindspore/ops/arrays/diagonals.py::_matrix", "mindspore/ops/reductions/statistics.py::_logcumsumexp",
        "mindspore/ops/linear_algebra/fourier.py::_window",
    ),
    "number": (
        *(f"mindspore/ops/elementwise/special.py::{name}" for name in ("polygamma", "logspace", "_logspace")),
        "mindspore/ops/reductions/statistics.py::_histogram", "mindspore/ops/sparse_formats/coo_primitives.py::indexes",
    ),
    "error": (
        "engine/formulas/ctc.py::check", "mindspore/ops/reductions/statistics.py::cov",
        "mindspore/ops/gradients/grad_structures.py::lstsq_v2_grad_op",
        *(f"mindspore/ops/linear_algebra/matrices.py::{name}" for name in (
            "_matrix_inverse", "pinv", "matrix_power", "cholesky", "_svd", "eigvals", "_tridiagonal_solve", "matrix_solve",
            "_lstsq", "cond",
        )),
        *(f"mindspore/scipy/linalg.py::{name}" for name in ("_inverse", "_factor", "_eigen")),
    ),
    "host algorithm": ("mindspore/ops/losses/ctc.py::_alphas",),
    "literal": ("mindspore/numpy/grids.py::_along",),
    "once": ("graph/passes/precision/policy.py::_is_supported",),
    "of its caller": (
        "engine/autograd/integer_gradients.py::_Shadows.__torch_function__", "graph/specialization/compiled_graph.py::Graph.run",
    ),
}
"""Functions that waited in a run on the stand-in accelerator (`--seen`), which their text does not show: an index may be a mask, a number
a Tensor, and torch checks matrices. The keys are those of REASONS."""
REASONS = {
    "length": "A Tensor names lengths, axes or numbers of a call. The shape of the result depends on it, so the host has to know it.",
    "data size": "The size of the result depends on values. torch waits for it in the same operator.",
    "asked": "The program asks for a value in Python.",
    "error": "Only the text of an error, or a check that the documentation demands, reads the values.",
    "control": "A branch or a loop of the graph depends on the value, and its parts run on the host.",
    "host algorithm": "The algorithm is sequential and runs on the host by design: sets, edit distance, assignment, replay buffers, ties.",
    "random": "The CPU's random numbers are drawn by the host, and this code runs for the CPU only.",
    "number": "torch's operator takes this parameter as a number of the host.",
    "loop": "A loop runs until its result is stable; each round asks whether it is.",
    "literal": "It makes a Tensor of numbers that the program or the operator wrote, once for each call.",
    "host value": "The value is on the host already.",
    "once": "It runs when a graph is captured, loaded or compared, or when a net is built: not in a step.",
    "exchange": "Processes agree on something before a run; the exchange is not part of a step.",
    "of its caller": "It runs operators that other functions write, and those are listed.",
    "move": "It is the move to the host or the device that the program or a switch asks for.",
}


@dataclass(frozen=True)
class Call:
    """One call: its file relative to src/torchspore, the function around it, its text, and its line."""

    file: str
    function: str
    text: str
    line: int

    @property
    def key(self) -> str:
        """Return the key in the table. It has no line number: that changes with every edit above it."""
        return f"{self.file}::{self.function}::{self.text}"


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str) -> None:
        self.file, self.scopes, self.calls = file, [""], list[Call]()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_scope(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_scope(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_scope(node)

    def _visit_scope(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.scopes.append(node.name)
        self.generic_visit(node)
        self.scopes.pop()

    def visit_Call(self, node: ast.Call) -> None:
        if is_host_read(node):
            text = ast.unparse(node)
            shown = text if len(text) < 70 else text[:67] + "..."
            self.calls.append(Call(self.file, ".".join(self.scopes[1:]) or "<module>", shown, node.lineno))
        self.generic_visit(node)


def is_host_read(node: ast.Call) -> bool:
    """Return whether a call reads values on the host or creates a tensor there, as far as its text shows."""
    function = node.func
    if isinstance(function, ast.Name):
        return function.id in CONVERSIONS and len(node.args) == 1 and _reduces(node.args[0])
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    if function.attr in READS:
        return owner not in NUMPY and not node.args
    if function.attr in CREATES or function.attr == "equal":
        return owner == "torch"
    return function.attr in SIZES and owner not in NUMPY


def _reduces(node: ast.expr) -> bool:
    """Return whether an expression is a torch call or a reduction such as `(x > 0).any()`."""
    if isinstance(node, ast.UnaryOp):
        return _reduces(node.operand)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
    return owner == "torch" or (node.func.attr in {"any", "all", "sum", "max", "min", "amax", "amin", "prod"} and owner not in NUMPY)


def calls() -> Iterator[Call]:
    """Yield the calls of all hot files, in the order of their files and lines."""
    for path in sorted(SOURCE.rglob("*.py")):
        file = path.relative_to(SOURCE).as_posix()
        is_cold = any(file == cold or file.startswith(f"{cold}/") for cold in COLD)
        if is_cold or not file.startswith(HOT):
            continue
        finder = _Finder(file)
        finder.visit(ast.parse(path.read_text(encoding="utf-8")))
        yield from finder.calls


def problems(table: dict[str, str]) -> list[str]:
    """Return the problems: calls without a reason, reasons that are unknown or have no call."""
    listed = list(calls())
    keys = {call.key for call in listed}
    expected = ", ".join(REASONS)
    lines = [f"src/torchspore/{call.file}:{call.line} {call.text}: no reason in tools/host_reads.json. Keep the value on the device, "
             f'or add the line "{call.key}" with one of: {expected}.' for call in listed if call.key not in table]
    lines += [f"{TABLE.name}: {key}: {reason!r} is no reason; expected one of {expected}."
              for key, reason in table.items() if reason not in REASONS]
    return lines + [f"{TABLE.name}: {key}: the source has no such call any more; remove it." for key in table if key not in keys]


def unlisted_waits(seen: Path) -> list[str]:
    """Return the waits that a run on the stand-in noted in functions without a listed call: `nonzero at FILE:LINE (FUNCTION)`."""
    functions = {(call.file, call.function) for call in calls()}
    functions |= {(file, name) for keys in NOT_IN_TEXT.values() for file, _, name in (key.partition("::") for key in keys)}
    lines: dict[str, None] = {}
    for note in seen.read_text(encoding="utf-8").splitlines():
        reason, _, where = note.partition(" at ")
        path, _, number = where.rpartition(":")
        file = path.partition("/src/torchspore/")[2]
        is_cold = any(file == cold or file.startswith(f"{cold}/") for cold in COLD)
        if not file or is_cold or not file.startswith(HOT):
            continue
        function = _function_at(SOURCE / file, int(number))
        if not any((file, name) in functions for name in _outer_scopes(function)):
            lines[f"{reason} at src/torchspore/{file}:{number} ({function})"] = None
    return list(lines)


def _function_at(path: Path, line: int) -> str:
    """Return the dotted name of the innermost function or class that contains a line."""
    names: list[str] = []
    nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.stmt) or not child.lineno <= line <= (child.end_lineno or child.lineno):
                continue
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.append(child.name)
            nodes = [child]
    return ".".join(names)


def _outer_scopes(function: str) -> list[str]:
    """Return `a.b.c`, `a.b` and `a`: a call may be listed for a function that is defined inside."""
    parts = function.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def main() -> int:
    """Print the list, or its problems; return 1 if there are problems."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if a call has no reason or a reason has no call")
    parser.add_argument("--seen", type=Path, metavar="FILE", help="print waits of a run on the stand-in whose function has no listed call")
    options = parser.parse_args()
    if options.seen:
        print("\n".join(unlisted_waits(options.seen)))
        return 0
    table: dict[str, str] = json.loads(TABLE.read_text(encoding="utf-8"))
    if options.check:
        wrong = problems(table)
        print("\n".join(wrong), file=sys.stderr)
        return 1 if wrong else 0
    listed = list(calls())
    for call in listed:
        print(f"src/torchspore/{call.file}:{call.line}  {call.text}  [{table.get(call.key, 'no reason')}]")
    for reason, count in Counter(table.get(call.key, "no reason") for call in listed).most_common():
        print(f"{count:5}  {reason}: {REASONS.get(reason, 'to be justified')}")
    for reason, keys in NOT_IN_TEXT.items():
        for key in keys:
            print(f"       seen on the stand-in: {key}  [{reason}]")
    for cold, reason in COLD.items():
        print(f"       not listed: {cold}, {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
