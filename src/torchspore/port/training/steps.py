"""Training steps: TrainOneStepCell, WithLossCell, `value_and_grad` and calls of optimizers."""
from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from torchspore.port.rules.rule import Bound, NoRule, bind, declare, literal
from torchspore.port.training.callbacks import indented
from torchspore.port.training.facts import Facts
from torchspore.port.training.optimizers import OptimizerWriter
from torchspore.port.training.precision import PrecisionWriter

_STEP = declare("TrainOneStepCell(network, optimizer, sens=1.0)", "").parameters
_BUILD = declare(
    "build_train_network(network, optimizer, loss_fn=None, level='O0', boost_level='O0', loss_scale_manager=None, "
    "keep_batchnorm_fp32=None, cast_model_type=None)", "").parameters
_WITH_LOSS = declare("WithLossCell(backbone, loss_fn)", "").parameters
_GRAD = declare("value_and_grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False)", "").parameters


@dataclass
class Inlined:
    """A call of a gradient function whose gradients only an optimizer reads."""

    function: str
    """The function that returns the loss."""
    targets: ast.expr
    call: ast.Call
    optimizer: str


class StepWriter:
    """Writes training steps."""

    def __init__(self, rewriter: Any, facts: Facts, optimizers: OptimizerWriter, precision: PrecisionWriter) -> None:
        self.rewriter, self.facts, self.optimizers, self.precision = rewriter, facts, optimizers, precision

    # ---- cells

    def cell(self, name: str, node: ast.Call) -> list[str]:
        """Return the function that does what a TrainOneStepCell or a WithLossCell does. Raises NoRule."""
        name_of_cell = self.facts.last_name(node)
        if name_of_cell == "WithLossCell":
            bound = bind(_WITH_LOSS, node)
            backbone, loss_fn = self.rewriter.text(bound.nodes["backbone"]), self.rewriter.text(bound.nodes["loss_fn"])
            return [f"def {name}(data, label):", f"    return {loss_fn}({backbone}(data), label)"]
        bound = bind(_BUILD if name_of_cell == "build_train_network" else _STEP, node)
        sens = bound.nodes.get("sens")
        if sens is not None and literal(sens) not in (1, 1.0):
            raise NoRule("the argument sens")
        for option in ("keep_batchnorm_fp32", "cast_model_type", "boost_level"):
            if option in bound.nodes and not bound.is_default(option):
                raise NoRule(f"the argument {option}")
        before = []
        optimizer = bound.nodes["optimizer"]
        if isinstance(optimizer, ast.Name):
            optimizer_name = str(self.rewriter.text(optimizer))
        else:
            optimizer_name = self.facts.fresh("optimizer")
            before = self.optimizers.statement(optimizer_name, optimizer)  # type: ignore[arg-type]
        arguments, network, loss = self._loss(bound)
        precision = self.precision.of_level(bound.nodes.get("level"), bound.nodes.get("loss_scale_manager"), network)
        step = self.precision.step(precision, "loss", loss, optimizer_name)
        return [*before, *precision.before, f"def {name}({arguments}):", *indented([*step, "return loss.detach()"])]

    def _loss(self, bound: Bound) -> tuple[str, str, str]:
        """Return the arguments of a step, its network, and its loss."""
        network, loss_fn = bound.nodes["network"], bound.nodes.get("loss_fn")
        if self.facts.last_name(network) == "WithLossCell":
            parts = bind(_WITH_LOSS, network)  # type: ignore[arg-type]
            network, loss_fn = parts.nodes["backbone"], parts.nodes["loss_fn"]
        text = str(self.rewriter.text(network))
        if loss_fn is None or literal(loss_fn) is None:
            return "*inputs", text, f"{text}(*inputs)"
        return "data, label", text, f"{self.rewriter.text(loss_fn)}({text}(data), label)"

    def module(self, node: ast.Call) -> str:
        """Return a TrainOneStepCell that is an attribute of a class of the program."""
        return str(self.rewriter.splice(node, {node.func: self.rewriter.helper("TrainOneStepCell")}))

    def network_of(self, node: ast.expr) -> str:
        """Return the Module inside of a TrainOneStepCell or a WithLossCell."""
        value = self.facts.value(node)
        name = self.facts.last_name(value) if value is not None else ""
        if name in ("TrainOneStepCell", "build_train_network"):
            return self.network_of(bind(_STEP if name == "TrainOneStepCell" else _BUILD, value).nodes["network"])  # type: ignore[arg-type]
        if name == "WithLossCell":
            return self.network_of(bind(_WITH_LOSS, value).nodes["backbone"])  # type: ignore[arg-type]
        return str(self.rewriter.text(node, "."))

    # ---- gradients

    def is_gradient(self, node: ast.expr | None) -> bool:
        """Return whether an expression is `value_and_grad(...)`."""
        return node is not None and self.facts.last_name(node) == "value_and_grad"

    def inlined(self, node: ast.Assign) -> Inlined | None:
        """Return the parts of `loss, grads = grad_fn(x, y)` if `optimizer(grads)` is the only use of the gradients."""
        target, call = node.targets[0], node.value
        if not (isinstance(target, ast.Tuple) and len(target.elts) == 2 and isinstance(target.elts[1], ast.Name)):
            return None
        if not isinstance(call, ast.Call):
            return None
        gradient = self.facts.value(call.func) if isinstance(call.func, ast.Name) else call.func
        if not self.is_gradient(gradient) or not isinstance(gradient, ast.Call):
            return None
        bound = bind(_GRAD, gradient)
        if literal(bound.nodes.get("grad_position")) is not None or "weights" not in bound.nodes:
            return None
        name, begin = target.elts[1].id, (node.lineno, node.col_offset)
        later = [(each.lineno, each.col_offset) for each in self._gradients_named(node, name) if (each.lineno, each.col_offset) > begin]
        end = min(later, default=(1 << 60, 0))
        uses = [use for use in self.facts.uses(name, node) if begin < (use.lineno, use.col_offset) < end]
        update = self.facts.parents.get(uses[0]) if len(uses) == 1 else None
        if not isinstance(update, ast.Call) or not self.facts.is_optimizer(update.func) or not self._is_simple(update):
            return None
        if literal(bound.nodes.get("has_aux")) is not True and self._returns_tuple(bound.nodes["fn"]):
            return None
        return Inlined(str(self.rewriter.text(bound.nodes["fn"], ".")), target.elts[0], call, str(self.rewriter.text(update.func)))

    def _is_simple(self, node: ast.Call) -> bool:
        """Return whether an update is a statement, or in `ops.depend(loss, optimizer(grads))`."""
        parent = self.facts.parents.get(node)
        return isinstance(parent, ast.Expr) or self.depends(parent) is not None

    def _returns_tuple(self, node: ast.expr) -> bool:
        statement = self.facts.file.defining.get(getattr(node, "id", ""), [None])[-1]
        return isinstance(statement, ast.FunctionDef) and any(isinstance(value, ast.Tuple) for value in self.facts.returned(statement))

    def inline(self, parts: Inlined) -> list[str]:
        """Return the lines instead of a call of a gradient function."""
        target = str(self.rewriter.text(parts.targets))
        loss = parts.targets.elts[0] if isinstance(parts.targets, ast.Tuple) else parts.targets
        target = target[1:-1] if target.startswith("(") and target.endswith(")") else target
        words = [self.rewriter.text(argument) for argument in parts.call.args]
        words += [f"{keyword.arg}={self.rewriter.text(keyword.value)}" for keyword in parts.call.keywords]
        return [
            f"{parts.optimizer}.zero_grad()", f"{target} = {parts.function}({', '.join(words)})", f"{self.rewriter.text(loss)}.backward()",
        ]

    def update(self, node: ast.Call) -> list[str]:
        """Return the lines of `optimizer(grads)`."""
        name = str(self.rewriter.text(node.func))
        steps = self.optimizers.step(name)
        if self._is_inlined(node):
            return steps
        return [f"{self.rewriter.helper('apply_gradients')}({name}, {self.rewriter.text(node.args[0])})", *steps[1:]]

    def _is_inlined(self, node: ast.Call) -> bool:
        """Return whether the gradients of an update are those of `backward`."""
        name = getattr(node.args[0], "id", "") if node.args else ""
        assignments = self._gradients_named(node, name)
        before = [each for each in assignments if (each.lineno, each.col_offset) < (node.lineno, node.col_offset)]
        nearest = max(before or assignments[:1], key=lambda each: (each.lineno, each.col_offset), default=None)
        return nearest is not None and self.inlined(nearest) is not None

    def _gradients_named(self, node: ast.AST, name: str) -> list[ast.Assign]:
        """Return the assignments of gradients to a name in the function around a node."""
        parts = [part for part in ast.walk(self.facts.functions_around(node)[0]) if isinstance(part, ast.Assign)]
        return [part for part in parts if isinstance(part.targets[0], ast.Tuple) and self._names_gradient(part, name)]

    @staticmethod
    def _names_gradient(node: ast.Assign, name: str) -> bool:
        elements = node.targets[0].elts  # type: ignore[attr-defined]
        return len(elements) == 2 and isinstance(elements[1], ast.Name) and elements[1].id == name

    def depends(self, node: ast.AST | None) -> ast.Call | None:
        """Return the update in `ops.depend(loss, optimizer(grads))`."""
        if isinstance(node, ast.Call) and self.facts.last_name(node).lower() == "depend" and len(node.args) == 2:
            update = node.args[1]
            if isinstance(update, ast.Call) and self.facts.is_optimizer(update.func):
                return update
        return None
