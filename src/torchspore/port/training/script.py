"""The statements and expressions of a training script in torch."""
from __future__ import annotations

import ast
from typing import Any

from torchspore.port.analysis.class_facts import REMOVED
from torchspore.port.analysis.definitions import CELLS, File, is_plain
from torchspore.port.analysis.source import Problem
from torchspore.port.rules.rule import NoRule
from torchspore.port.training.callbacks import CallbackWriter
from torchspore.port.training.datasets import DatasetWriter
from torchspore.port.training.facts import CALLBACKS, LOSS_SCALES, OPTIMIZERS, Facts
from torchspore.port.training.loops import METRICS, LoopWriter
from torchspore.port.training.modes import Modes
from torchspore.port.training.optimizers import LISTS, SCHEDULES, OptimizerWriter
from torchspore.port.training.precision import PrecisionWriter
from torchspore.port.training.steps import StepWriter

_SETTINGS = frozenset("set_context set_device set_auto_parallel_context reset_auto_parallel_context set_algo_parameters".split())
_STEPS = ("TrainOneStepCell", "WithLossCell", "build_train_network")
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


class Script:
    """Writes what a script does beside its Cells; `by_hand` lists what is left to do by hand."""

    def __init__(self, rewriter: Any, file: File, omitted: dict[str, Problem]) -> None:
        self.rewriter, self.file, self.facts = rewriter, file, Facts(file)
        self.omitted = omitted
        """Classes that the port leaves out, with the reason."""
        self.optimizers = OptimizerWriter(rewriter, self.facts, set(omitted))
        self.datasets = DatasetWriter(rewriter, self.facts)
        precision = PrecisionWriter(rewriter, self.facts, self.optimizers)
        callbacks = CallbackWriter(rewriter, self.facts, set(omitted))
        self.loops = LoopWriter(rewriter, self.facts, self.optimizers, self.datasets, callbacks, precision)
        self.steps = StepWriter(rewriter, self.facts, self.optimizers, precision)
        self.modes = Modes(file, self.facts)
        self.by_hand: list[Problem] = []
        self._removed: set[ast.stmt] = set()

    # ---- statements

    def statement(self, node: ast.stmt) -> str | None:
        """Return the torch form of a statement; None if it has no training in it."""
        if self._is_in_class(node):
            return None
        if not isinstance(node, _SIMPLE):
            self._write_header(node)
            return None
        before, reasons = len(self.rewriter.problems), len(self.rewriter.reasons)
        try:
            lines = self._lines(node)
            text = None if lines is None else self._joined(node, lines)
            if text is None and (names := sorted(self.omitted.keys() & {part.id for part in ast.walk(node) if isinstance(part, ast.Name)})):
                reason = self.omitted[names[0]].text
                raise NoRule(reason if names[0] in reason else f"{names[0]}: {reason}")
            if text is None:
                text = self.rewriter.splice_statement(node)
        except NoRule as error:
            self.rewriter.problem(node, f"no rule for {error}")
            text = ""
        if len(self.rewriter.problems) > before:
            problems = self.rewriter.problems[before:]
            del self.rewriter.problems[before:], self.rewriter.reasons[reasons:]
            self.by_hand.append(problems[0])
            return self._to_do_by_hand(node, problems[0])
        return text

    def _write_header(self, node: ast.stmt) -> None:
        """Write the expression of a compound statement; one without a rule is left to do by hand."""
        for header in (getattr(node, name, None) for name in ("iter", "test")):
            if header is None:
                continue
            problems, reasons = self.rewriter.problems, len(self.rewriter.reasons)
            before = len(problems)
            text = self.rewriter.render(header)
            if len(problems) > before:
                self.by_hand.append(problems[before])
                text = f"{self.rewriter.helper('to_do_by_hand')}({problems[before].text!r})"
                del problems[before:], self.rewriter.reasons[reasons:]
            self.rewriter._replaced = {**self.rewriter._replaced, header: text}

    def _is_in_class(self, node: ast.AST) -> bool:
        while node in self.facts.parents:
            node = self.facts.parents[node]
            if isinstance(node, ast.ClassDef):
                return True
        return False

    def _joined(self, node: ast.stmt, lines: list[str]) -> str:
        indent = self.rewriter.source.indent(node)
        if indent is None and len(lines) > 1:
            raise NoRule("several statements of training in one line")
        if lines:
            first, *rest = _with_gaps(lines, indent or "")
            step = "\t" if "\t" in (indent or "") else "    "
            return "\n".join([first, *((indent or "") + _indented_by(step, line) if line else "" for line in rest)])
        self._removed.add(node)
        block = next((block for block in self._blocks(node) if node in block), [node])
        is_last = block[-1] is node and all(each in self._removed for each in block)
        return "pass" if indent is None or (is_last and not isinstance(self.facts.parents.get(node), ast.Module)) else REMOVED

    def _blocks(self, node: ast.stmt) -> list[list[ast.stmt]]:
        parent = self.facts.parents.get(node)
        return [block for name in ("body", "orelse", "finalbody") if isinstance(block := getattr(parent, name, None), list)]

    def _to_do_by_hand(self, node: ast.stmt, problem: Problem) -> str:
        """Return a statement that says what is left to do, below the original as a comment."""
        begin, end = self.rewriter.source.span(node)
        indent = self.rewriter.source.indent(node)
        original = self.rewriter.source.text[begin:end].split("\n")
        comment = "" if indent is None else "".join(f"# {line.strip()}\n{indent}" for line in original)
        call = f"{self.rewriter.helper('to_do_by_hand')}({problem.text!r})"
        if isinstance(node, ast.Return):
            return f"{comment}return {call}"
        names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
        return f"{comment}{' = '.join([*dict.fromkeys(names), call])}"

    def _lines(self, node: ast.stmt) -> list[str] | None:
        """Return the lines instead of a statement; None if it has the form of others. Raises NoRule."""
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            lines = self._assignment(node)
            if lines is not None:
                return lines
        if isinstance(node, ast.Return) and (update := self.steps.depends(value)) is not None:
            return [*self.steps.update(update), f"return {self.rewriter.text(value.args[0])}"]  # type: ignore[union-attr]
        if not isinstance(node, ast.Expr) or not isinstance(value, ast.Call):
            return None
        return self._expression(value)

    def _assignment(self, node: ast.Assign) -> list[str] | None:
        value, target = node.value, node.targets[0]
        name = self.facts.last_name(value)
        if (update := self.steps.depends(value)) is not None:
            return self.steps.update(update)
        if isinstance(value, ast.Call) and (parts := self.steps.inlined(node)) is not None:
            return self.steps.inline(parts)
        if not isinstance(target, ast.Name) or not isinstance(value, ast.Call):
            return self._list_of_callbacks(node)
        if name == "Model":
            is_handed_on = self.loops.is_handed_on(target, node)
            lines = self.loops.hoisted(value)
            return [*lines, self.loops.evaluation_object(str(self.rewriter.text(target)), value)] if is_handed_on else lines
        if name in OPTIMIZERS:
            return self.optimizers.statement(str(self.rewriter.text(target)), value)
        if self.facts.user_optimizer(value) is not None and self.facts.user_optimizer(value)[1].name not in self.omitted:  # type: ignore[index]
            return [f"{self.rewriter.text(target)} = {self.optimizers.of_program(value)}"]
        if self._begins_in_evaluation(value) or self.modes.stays_in_evaluation(target.id, value):
            self.rewriter.note("the script does not call set_train of it: norms and dropouts stay in evaluation")
            return [f"{self.rewriter.text(target)} = {self.rewriter.text(value)}", f"{self.rewriter.text(target)}.eval()"]
        is_handed_on = target.id in self.optimizers.owners.handed_on
        if name in ("TrainOneStepCell", "build_train_network") or (name == "WithLossCell" and not is_handed_on):
            return self.steps.cell(target.id, value)
        if name in CALLBACKS or name in LOSS_SCALES:
            return []
        if self.steps.is_gradient(value) and self._is_inlined_everywhere(target.id, node):
            return []
        return None

    def _begins_in_evaluation(self, node: ast.Call) -> bool:
        """Return whether a call creates a Cell with norms or dropout, in a script that never calls set_train or a Model."""
        target = self.facts.class_of(node)
        if target is None or not target[0].is_kind(target[1], CELLS):
            return False
        parts = [part for part in self.file.source.nodes if isinstance(part, (ast.Attribute, ast.Name))]
        names = {part.attr if isinstance(part, ast.Attribute) else part.id for part in parts}
        has_modes = any(word in target[0].source.text for word in ("BatchNorm", "Dropout", "dropout"))
        return has_modes and not names & {"set_train", "Model", "TrainOneStepCell", "build_train_network", "training"}

    def _list_of_callbacks(self, node: ast.Assign) -> list[str] | None:
        value = node.value
        if not isinstance(value, (ast.List, ast.Tuple)) or not value.elts:
            return None
        return [] if all(self.loops.callbacks.is_callback(element) for element in value.elts) else None

    def _is_inlined_everywhere(self, name: str, node: ast.Assign) -> bool:
        """Return whether each call of a gradient function becomes `backward`."""
        for part in self.file.source.nodes:
            if not (isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)):
                continue
            call = self.facts.parents.get(part)
            statement = self.facts.parents.get(call) if call is not None else None
            if not isinstance(statement, ast.Assign) or statement.value is not call or self.steps.inlined(statement) is None:
                return False
        return True

    def _expression(self, node: ast.Call) -> list[str] | None:
        name = self.facts.source.mindspore_name(node.func) or ""
        if name.rpartition(".")[2] in _SETTINGS:
            return []
        if name.rpartition(".")[2] == "set_seed" and self._numpy() and len(node.args) == 1:
            seed = self.rewriter.text(node.args[0])
            return [f"torch.manual_seed({seed})", f"{self._numpy()}.random.seed({seed})"]
        if self.facts.is_optimizer(node.func) and len(node.args) == 1:
            return self.steps.update(node)
        if not isinstance(node.func, ast.Attribute):
            return None
        method, receiver = node.func.attr, node.func.value
        if method in ("train", "fit") and self.facts.model_of(receiver) is not None:
            return self.loops.train(node, method == "fit")
        value = self.facts.value(receiver)
        if method == "set_train" and value is not None and self.facts.last_name(value) in _STEPS:
            mode = self.rewriter.text(node.args[0]) if node.args else ""
            return [f"{self.steps.network_of(receiver)}.train({mode})"]
        return None

    def _numpy(self) -> str:
        """Return the name of NumPy in the script; MindSpore's set_seed sets its seed too."""
        return next((name for name, dotted in self.file.source.imports.items() if dotted == "numpy"), "")

    # ---- expressions

    def expression(self, node: ast.Call) -> str | None:
        """Return the torch form of a call; None if it has no training in it. A problem is noted."""
        if self._is_in_class(node):
            return self._in_class(node)
        try:
            return self._call(node)
        except NoRule as error:
            self.rewriter.problem(node, f"{ast.unparse(node.func)}: no rule for {error}")
            return str(self.rewriter.source.text[slice(*self.rewriter.source.span(node))])

    def _of_schedule(self, node: ast.Call) -> str | None:
        """Return a schedule or a list of rates; None for another expression."""
        name = self.facts.last_name(node)
        if name not in SCHEDULES and name not in LISTS:
            return None
        helper = self.rewriter.helper(SCHEDULES.get(name, name))
        return str(self.rewriter.splice(node, {node.func: helper}))

    def _in_class(self, node: ast.Call) -> str | None:
        """Return the torch form of a call in a class: a schedule, an update of parameters."""
        if self.optimizers.owners.is_optimizer(node.func) and len(node.args) == 1:
            words = f"{self.rewriter.text(node.func)}, {self.rewriter.text(node.args[0])}"
            return f"{self.rewriter.helper('apply_gradients')}({words})"
        if (schedule := self._of_schedule(node)) is not None:
            return schedule
        owner = self.facts.class_around(node)
        if owner is None or not is_plain(owner):
            return None
        try:
            return self._in_plain_class(node)
        except NoRule as error:
            self.rewriter.problem(node, f"{ast.unparse(node.func)}: no rule for {error}")
            return str(self.rewriter.source.text[slice(*self.rewriter.source.span(node))])

    def _in_plain_class(self, node: ast.Call) -> str | None:
        """Return the torch form of a call in a class without bases, such as a trainer of the program. Raises NoRule."""
        name = self.facts.last_name(node)
        if name in OPTIMIZERS:
            return self.optimizers.expression(node)
        if name == "TrainOneStepCell":
            return self.steps.module(node)
        if name in ("Model", "build_train_network", "TrainOneStepWithLossScaleCell", "DynamicLossScaleUpdateCell"):
            raise NoRule(f"{name} in a class: write it in a function")
        if name in METRICS:
            return self.loops.metric(node)
        return self.datasets.expression(node)

    def attribute(self, node: ast.Attribute) -> str | None:
        """Return the parameters of an optimizer; None for another attribute."""
        is_optimizer = self.facts.is_optimizer(node.value) or self.optimizers.owners.is_optimizer(node.value)
        if node.attr != "parameters" or not is_optimizer:
            return None
        return f"{self.rewriter.helper('parameters_of')}({self.rewriter.text(node.value)})"

    def _call(self, node: ast.Call) -> str | None:
        if (rates := self._of_schedule(node)) is not None:
            return rates
        if self.modes.is_inside_of_evaluation(node):
            self.rewriter.note("a Cell begins in evaluation")
            return f"{self.rewriter.splice(node)}.eval()"
        name = self.facts.last_name(node)
        if name in OPTIMIZERS:
            return self.optimizers.expression(node)
        if name in METRICS:
            return self.loops.metric(node)
        if name in ("TrainOneStepCell", "build_train_network", "Model", "TrainOneStepWithLossScaleCell", "DynamicLossScaleUpdateCell"):
            raise NoRule(f"{name} here: assign it to a name")
        if isinstance(node.func, ast.Attribute) and self.facts.model_of(node.func.value) is not None:
            if node.func.attr == "eval":
                return self.loops.evaluation(node)
            if node.func.attr == "predict":
                words = [self.loops._part(node.func.value, "network"), *(self.rewriter.text(argument) for argument in node.args)]
                return f"{self.rewriter.helper('predict')}({', '.join(words)})"
            raise NoRule(f"Model.{node.func.attr}")
        return self.datasets.expression(node)

    def formatted(self, node: ast.expr) -> str | None:
        """Return the torch form of an expression of an f-string, if it is the number of rows of a data set."""
        is_size = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_dataset_size"
        return f"len({ast.unparse(node.func.value)})" if is_size else None  # type: ignore[attr-defined]

    def list_of_groups(self, node: ast.List) -> str | None:
        """Return groups of parameters without `order_params`, which torch has no use of."""
        rest = [element for element in node.elts if not _has_key(element, "order_params")]
        if len(rest) == len(node.elts):
            return None
        return "[" + ", ".join(self.rewriter.text(element) for element in rest) + "]"


def _indented_by(step: str, line: str) -> str:
    """Return a line that is indented by four spaces a level with the step of the file instead."""
    text = line.lstrip(" ")
    return step * ((len(line) - len(text)) // 4) + text


def _with_gaps(lines: list[str], indent: str) -> list[str]:
    """Return lines with empty ones around a function."""
    first = next((index for index, line in enumerate(lines) if line.startswith("def ")), None)
    if first is None:
        return lines
    gap = [""] if indent else ["", ""]
    return [*lines[:first], *(gap if first else []), *lines[first:], *gap]


def _has_key(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Dict) and any(isinstance(key, ast.Constant) and key.value == name for key in node.keys)
