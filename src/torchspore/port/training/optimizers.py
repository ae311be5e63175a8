"""Optimizers and their learning rates in torch."""
from __future__ import annotations

import ast
from typing import Any

from torchspore.port.analysis.call import Call
from torchspore.port.analysis.kinds import NUMPY, Scope
from torchspore.port.rules.rule import ANY, NoRule, bind, literal
from torchspore.port.rules.training import FIXED_SCALE, OPTIMIZERS
from torchspore.port.training import user_classes
from torchspore.port.training.facts import Facts
from torchspore.port.training.owners import Owners

_PARAMETERS, _RATE = "\1", "\2"
_ALL = ("trainable_params", "get_parameters")
_ADAM = "@Adam(\1, \2<, beta1={beta1}><, beta2={beta2}><, eps={eps}><, use_nesterov={use_nesterov}>"
_TEMPLATES = {
    "Momentum": "optim.SGD(\1, \2, momentum={momentum}<, nesterov={use_nesterov}>)",
    "SGD": "optim.SGD(\1, \2<, momentum={momentum}><, dampening={dampening}><, nesterov={nesterov}>)",
    "Adam": f"{_ADAM}<, use_amsgrad={{use_amsgrad}}>)", "LazyAdam": f"{_ADAM})", "AdamOffload": f"{_ADAM})",
    "AdamWeightDecay": "@AdamWeightDecay(\1, \2<, beta1={beta1}><, beta2={beta2}><, eps={eps}>)",
    "RMSProp": "@RMSProp(\1, \2<, decay={decay}><, momentum={momentum}><, eps={epsilon}><, centered={centered}>)",
    "Adagrad": "optim.Adagrad(\1, \2, initial_accumulator_value={accum}, eps=0)",
    "Adadelta": "optim.Adadelta(\1, \2, rho={rho}, eps={epsilon})",
    "AdaMax": "@AdaMax(\1, \2<, beta1={beta1}><, beta2={beta2}><, eps={eps}>)",
}
_NOTES = {
    "Adam": "MindSpore adds eps to the root before the correction of the bias",
    "AdamWeightDecay": "MindSpore does not correct the bias",
    "RMSProp": "MindSpore's mean of squares begins with 1, and eps is inside of the root",
    "Adagrad": "MindSpore adds no eps to the root",
    "AdaMax": "MindSpore adds eps to the largest gradient",
}
SCHEDULES = {
    "CosineDecayLR": "CosineDecay", "ExponentialDecayLR": "ExponentialDecay", "NaturalExpDecayLR": "NaturalExpDecay",
    "InverseDecayLR": "InverseDecay", "PolynomialDecayLR": "PolynomialDecay", "WarmUpLR": "WarmUp",
}
LISTS = frozenset(
    "piecewise_constant_lr exponential_decay_lr natural_exp_decay_lr inverse_decay_lr cosine_decay_lr polynomial_decay_lr warmup_lr".split()
)


class OptimizerWriter:
    """Writes optimizers; `schedulers` has the names of the schedulers by those of their optimizers."""

    def __init__(self, rewriter: Any, facts: Facts, omitted: set[str]) -> None:
        self.rewriter, self.facts, self.omitted, self.owners = rewriter, facts, omitted, Owners(facts)
        self.schedulers: dict[str, str] = {}
        calls = [node for node in facts.source.nodes if isinstance(node, ast.Call)]
        models = [model for node in calls if (model := facts.model_of(node)) is not None]
        self._scales: list[tuple[ast.expr | None, ast.expr]] = [
            (facts.value(model.nodes.get("optimizer")), self._scale_left(model.nodes.get("loss_scale_manager"))) for model in models
        ]
        """Optimizers, and the scale that the Model leaves in their gradients."""

    def _scale_left(self, manager: ast.expr | None) -> ast.expr:
        """Return the scale that a loss scale manager leaves in the gradients: only one without `drop_overflow_update` does."""
        value = self.facts.value(manager)
        if not isinstance(value, ast.Call) or self.facts.last_name(value) != "FixedLossScaleManager":
            return ast.Constant(1.0)
        bound = bind(FIXED_SCALE, value)
        if literal(bound.nodes.get("drop_overflow_update", bound.defaults["drop_overflow_update"])) is not False:
            return ast.Constant(1.0)
        return bound.nodes.get("loss_scale", bound.defaults["loss_scale"])

    def _check_scale(self, call: Call, node: ast.Call) -> None:
        """Raises NoRule unless the loss scale of an optimizer is the one that the Model leaves in the gradients."""
        expected: ast.expr = next((scale for optimizer, scale in self._scales if optimizer is node), ast.Constant(1.0))
        actual = call.argument("loss_scale") or ast.Constant(1.0)
        if ast.dump(expected) != ast.dump(actual) and (literal(expected) != literal(actual) or literal(actual) is ANY):
            raise NoRule(f"the loss_scale {ast.unparse(actual)} of an optimizer whose gradients have the scale {ast.unparse(expected)}")

    def statement(self, name: str, node: ast.Call) -> list[str]:
        """Return the lines that assign an optimizer to a name. Raises NoRule."""
        text, schedule = self._written(node)
        lines = [f"{name} = {text}"]
        if schedule:
            schedule = self._for_groups(node, schedule)
            scheduler = self.facts.fresh("scheduler", f"{name}_scheduler")
            lines.append(f"{scheduler} = optim.lr_scheduler.LambdaLR({name}, {schedule})")
            if name in self.owners.handed_on:
                lines.append(f"{name}.register_step_post_hook(lambda *_: {scheduler}.step())")
            else:
                self.schedulers[name] = scheduler
        return lines

    def _for_groups(self, node: ast.Call, schedule: str) -> str:
        """Return the schedule; for groups of which some have a constant rate, a list."""
        value = self.facts.value(bind(OPTIMIZERS[self.facts.last_name(node)], node).nodes.get("params"))
        if not isinstance(value, ast.List):
            return schedule
        keys = [{literal(key) for key in element.keys} for element in value.elts if isinstance(element, ast.Dict)]
        groups = [names for names in keys if "order_params" not in names]
        if not any("lr" in names for names in groups):
            return schedule
        return "[" + ", ".join("lambda _: 1.0" if "lr" in names else schedule for names in groups) + "]"

    def expression(self, node: ast.Call) -> str:
        """Return an optimizer inside of an expression, with its schedule. Raises NoRule."""
        text, schedule = self._written(node)
        return text if not schedule else f"{self.rewriter.helper('with_schedule')}({text}, {self._for_groups(node, schedule)})"

    def of_program(self, node: ast.Call) -> str:
        """Return the creation of an optimizer that the program defines. Raises NoRule for groups, and for a list with weight decay."""
        file, definition = self.facts.user_optimizer(node)  # type: ignore[misc]
        replaced: dict[ast.AST, str] = {}
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            value = _trainable(self.facts.value(argument))
            is_group = isinstance(value, ast.List) and bool(value.elts) and isinstance(value.elts[0], ast.Dict)
            if is_group:
                raise NoRule(f"groups of parameters for {definition.name}")
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _ALL:
                replaced[argument] = self._all_parameters(value.func.value, user_classes.decays(file, definition))
        if not replaced and user_classes.decays(file, definition):
            raise NoRule(f"a list of parameters for {definition.name}, which may have a weight decay: pass net.trainable_params()")
        return str(self.rewriter.splice(node, replaced))

    def _all_parameters(self, cell: ast.expr, decays: bool) -> str:
        """Return the parameters of a Cell for an optimizer of the program."""
        if not decays:
            return f"{self.rewriter.text(cell, '.')}.parameters()"
        self.rewriter.note("MindSpore decays no weights and biases of norms")
        return f"{self.rewriter.helper('with_decay')}({self.rewriter.text(cell)}, 1.0)"

    def step(self, name: str) -> list[str]:
        """Return the lines that update the parameters by their gradients."""
        scheduler = self.schedulers.get(name)
        return [f"{name}.step()", *([f"{scheduler}.step()"] if scheduler else [])]

    def _written(self, node: ast.Call) -> tuple[str, str]:
        """Return the optimizer, and the schedule of its rate, if it changes."""
        name = self.facts.last_name(node)
        if name not in OPTIMIZERS:
            raise NoRule(f"{name}: write it as a torch.optim.Optimizer")
        call = Call(self.rewriter, node, bind(OPTIMIZERS[name], node))
        self._check_scale(call, node)
        for option in ("use_lazy", "use_offload", "update_slots"):
            if call.has(option):
                raise NoRule(f"the argument {option}")
        rate, schedule = self._rate(call)
        parameters = self._parameters(call)
        if schedule:
            self.rewriter.note("the scheduler's rate is a multiple of lr")
        if name in _NOTES:
            self.rewriter.note(_NOTES[name])
        return call.fill(_TEMPLATES[name]).replace(_PARAMETERS, parameters).replace(_RATE, f"lr={rate}"), schedule

    def _rate(self, call: Call) -> tuple[str, str]:
        """Return the rate, and the function of the step that it follows."""
        node = call.argument("learning_rate")
        if node is None:
            return call.text("learning_rate"), ""
        value = self._returned(self.facts.value(node))
        name = self.facts.last_name(value) if value is not None else ""
        if name in SCHEDULES:
            return "1.0", str(self.rewriter.text(node))
        if name == "Tensor" and isinstance(value, ast.Call) and value.args:
            inner = value.args[0]
            if isinstance(literal(self.facts.value(inner)), (int, float)):
                is_of_function = value is not self.facts.value(node)
                return (f"float({self.rewriter.text(node)})" if is_of_function else str(self.rewriter.text(inner))), ""
            return "1.0", f"{call.helper('Rates')}({self.rewriter.text(inner if value is node else node)})"
        if self._is_list(value):
            return "1.0", f"{call.helper('Rates')}({self.rewriter.text(node)})"
        target = self.facts.class_of(value)
        if target is not None and target[1].name not in self.omitted and user_classes.is_schedule(*target):
            return "1.0", f"{call.helper('RateOf')}({self.rewriter.text(node)})"
        if target is not None or name:
            raise NoRule(f"the learning rate {ast.unparse(value) if value is not None else ''}")
        return str(self.rewriter.text(node)), ""

    def _returned(self, node: ast.expr | None) -> ast.expr | None:
        """Return the schedule that a function of the script returns; for another expression itself."""
        function = self.facts.function(node) if node is not None else None
        values = [self.facts.value(value) for value in self.facts.returned(function)] if function is not None else []
        is_schedule = len(values) == 1 and values[0] is not None and (
            self.facts.last_name(values[0]) in (*SCHEDULES, "Tensor") or self.facts.class_of(values[0]) is not None)
        return values[0] if is_schedule else node

    def _is_list(self, node: ast.expr | None, depth: int = 0) -> bool:
        """Return whether an expression is a list of rates."""
        if isinstance(node, (ast.List, ast.ListComp, ast.Tuple)):
            return True
        if node is None or depth > 8:                        # a name may be computed from itself
            return False
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
            return self._is_list(node.left, depth + 1) or self._is_list(node.right, depth + 1)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return self._is_list(node.value, depth + 1)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple", "sorted"):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("tolist", "astype"):
            return True
        if isinstance(node, ast.Name):
            return any(self._is_list(value, depth + 1) for value in self.facts.assigned(node.id, node))
        if self.facts.last_name(node) in LISTS or self.rewriter.scope.kind(node) == "numpy":
            return True
        function = self.facts.function(node)
        if function is not None:
            return any(self._is_list(self.facts.value(value), depth + 1) for value in self.facts.returned(function))
        return self._is_list_of_other_file(node)

    def _is_list_of_other_file(self, node: ast.expr) -> bool:
        """Return whether an expression is a call of a function of another file that returns a list."""
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        target = self.facts.file.resolve(name) if name else None
        function = target[0].defining.get(target[1], [None])[-1] if target is not None else None
        if target is None or not isinstance(function, ast.FunctionDef):
            return False
        facts = Facts(target[0])
        scope = Scope(target[0].source)
        scope.learn(function.body, function.args)
        values = [facts.value(value) for value in facts.returned(function)]
        return any(isinstance(value, (ast.List, ast.ListComp)) or scope.kind(value) == NUMPY for value in values if value is not None)

    def _parameters(self, call: Call) -> str:
        """Return torch's parameters: groups where MindSpore decays some of them only."""
        node = call.argument("params")
        value = _trainable(self.facts.value(node))
        decays = call.has("weight_decay") and call.value("weight_decay") not in (0, 0.0)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _ALL:
            if not decays and not isinstance(node, ast.Name):  # frozen ones have no gradient
                return f"{self.rewriter.text(value.func.value, '.')}.parameters()"
            if not decays:
                return str(self.rewriter.text(node))
            self.rewriter.note("MindSpore decays no weights and biases of norms")
            return f"{call.helper('with_decay')}({self.rewriter.text(value.func.value)}, {call.text('weight_decay')})"
        text = str(self.rewriter.text(node))
        if isinstance(value, ast.List) and value.elts and all(isinstance(element, ast.Dict) for element in value.elts):
            _check_groups(self.facts, value)
            return f"{text}, weight_decay={call.text('weight_decay')}" if decays else text
        if decays and not self.rewriter.reads_names:
            raise NoRule("weight_decay for a list of parameters: pass net.trainable_params()")
        if decays:
            self.rewriter.note("MindSpore decays no weights and biases of norms")
            return f"{call.helper('grouped_by_decay')}({text}, {call.text('weight_decay')})"
        return text


def _trainable(node: ast.expr | None) -> ast.expr | None:
    """Return the call in `filter(lambda p: p.requires_grad, net.get_parameters())`; another expression itself."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "filter" and len(node.args) == 2):
        return node
    function, call = node.args
    is_trained = isinstance(function, ast.Lambda) and isinstance(function.body, ast.Attribute) and function.body.attr == "requires_grad"
    is_of_cell = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _ALL
    return call if is_trained and is_of_cell else node


def _check_groups(facts: Facts, value: ast.List) -> None:
    """Raises NoRule for groups that torch's optimizers can't have."""
    for element in value.elts:
        assert isinstance(element, ast.Dict)
        for key, item in zip(element.keys, element.values):
            name = literal(key)
            if name not in ("params", "lr", "weight_decay", "order_params"):
                raise NoRule(f"a group with {name!r}")
            rate = facts.value(item)
            if name == "lr" and rate is not None and (facts.last_name(rate) or isinstance(rate, (ast.List, ast.ListComp))):
                raise NoRule("a schedule of a group")
