"""`Model.train`, `Model.fit` and `Model.eval` as loops and calls."""
from __future__ import annotations

import ast
from typing import Any

from torchspore.port.analysis.spans import bound_in
from torchspore.port.rules.rule import Bound, NoRule, bind, declare, literal
from torchspore.port.training import user_classes
from torchspore.port.training.callbacks import CallbackWriter, Lines, Names, indented
from torchspore.port.training.datasets import DatasetWriter
from torchspore.port.training.facts import Facts
from torchspore.port.training.optimizers import OptimizerWriter
from torchspore.port.training.precision import PrecisionWriter

_TRAIN = declare("train(epoch, train_dataset, callbacks=None, dataset_sink_mode=False, sink_size=-1, initial_epoch=0)", "").parameters
_FIT = declare(
    "fit(epoch, train_dataset, valid_dataset=None, valid_frequency=1, callbacks=None, dataset_sink_mode=False, "
    "valid_dataset_sink_mode=False, sink_size=-1, initial_epoch=0)", "").parameters
_EVAL = declare("eval(valid_dataset, callbacks=None, dataset_sink_mode=False)", "").parameters
METRICS = {
    "Accuracy": "Accuracy", "acc": "Accuracy", "accuracy": "Accuracy", "Loss": "Loss", "loss": "Loss", "MAE": "MeanError(1)",
    "mae": "MeanError(1)", "MSE": "MeanError(2)", "mse": "MeanError(2)", "Top1CategoricalAccuracy": "TopKCategoricalAccuracy(1)",
    "top_1_accuracy": "TopKCategoricalAccuracy(1)", "Top5CategoricalAccuracy": "TopKCategoricalAccuracy(5)",
    "top_5_accuracy": "TopKCategoricalAccuracy(5)", "TopKCategoricalAccuracy": "TopKCategoricalAccuracy",
}


class LoopWriter:
    """Writes the methods of a Model."""

    def __init__(
        self, rewriter: Any, facts: Facts, optimizers: OptimizerWriter, datasets: DatasetWriter, callbacks: CallbackWriter,
        precision: PrecisionWriter,
    ) -> None:
        self.rewriter, self.facts, self.optimizers, self.datasets, self.callbacks = rewriter, facts, optimizers, datasets, callbacks
        self.precision = precision
        self.names: dict[tuple[int, str], str] = {}
        """Names of what a Model has as arguments without a name, by the call and the argument."""

    def hoisted(self, node: ast.Call) -> list[str]:
        """Return assignments for arguments of a Model that have no names. Raises NoRule."""
        model = self.facts.model_of(node)
        if model is None:
            raise NoRule("its arguments")
        for name in ("eval_network", "eval_indexes", "boost_level", "keep_batchnorm_fp32"):
            if not model.is_default(name):
                raise NoRule(f"the argument {name}")
        lines = []
        for argument, names in (("network", ("network", "net")), ("loss_fn", ("loss_fn", "criterion")), ("optimizer", ("optimizer",))):
            value = model.nodes.get(argument)
            if value is None or isinstance(value, (ast.Name, ast.Attribute)) or literal(value) is None:
                continue
            name = self.names[id(node), argument] = self.facts.fresh(*names)
            lines += self.optimizers.statement(name, value) if argument == "optimizer" and isinstance(value, ast.Call) else [
                f"{name} = {self.rewriter.text(value)}"]
        return lines

    def _part(self, node: ast.expr, argument: str) -> str:
        """Return the text of an argument of the Model that an expression means; "" if it has none."""
        call = self.facts.value(node)
        model = self.facts.model_of(node)
        assert model is not None
        if (id(call), argument) in self.names:
            return self.names[id(call), argument]
        value = model.nodes.get(argument)
        return "" if value is None or literal(value) is None else str(self.rewriter.text(value))

    def train(self, node: ast.Call, is_fit: bool = False) -> list[str]:
        """Return the lines of a training. Raises NoRule."""
        receiver = node.func.value  # type: ignore[attr-defined]
        before = self.hoisted(receiver) if isinstance(receiver, ast.Call) else []
        bound = bind(_FIT if is_fit else _TRAIN, node)
        if not bound.is_default("initial_epoch"):
            raise NoRule("the argument initial_epoch")
        network, optimizer = self._part(receiver, "network"), self._part(receiver, "optimizer")
        if not optimizer:
            raise NoRule("a Model without an optimizer: its network trains by itself")
        dataset = bound.nodes["train_dataset"]
        columns = self._names_of_columns(dataset)
        loss, epoch = self.facts.fresh("loss", "loss_value", "step_loss"), self.facts.fresh("epoch", "epoch_number")
        lines = Lines()
        model = self.facts.model_of(receiver)
        assert model is not None
        precision = self.precision.of_level(model.nodes.get("amp_level"), model.nodes.get("loss_scale_manager"), network)
        lines.step = self.precision.step(precision, loss, self._loss(receiver, network, columns), optimizer)
        lines.before = [*before, *precision.before, f"{network}.train()"]
        names = Names(
            network, optimizer, self._part(receiver, "loss_fn"), loss, self.datasets.loader(dataset),
            str(self.rewriter.text(bound.nodes["epoch"])), epoch, self.facts.fresh("step", "step_number"),
            self.facts.fresh("step_count", "steps"))
        if is_fit and not bound.is_default("valid_dataset"):
            self._add_evaluation(receiver, bound, lines, epoch)
        has_evaluation = is_fit and not bound.is_default("valid_dataset")
        self.callbacks.add_all(bound.nodes.get("callbacks"), lines, names, has_evaluation)
        return self._composed(lines, self._epochs(bound.nodes["epoch"]), columns, names)

    def _composed(self, lines: Lines, epochs: str, columns: list[str], names: Names) -> list[str]:
        target = ", ".join(columns) + ("," if len(columns) == 1 else "")
        header = f"for {target} in {names.dataset}:"
        if lines.needs_step:
            header = f"for {names.step}, ({target}) in enumerate({names.dataset}, 1):"
        step = [*([f"{names.count} += 1"] if lines.needs_count else []), *lines.step_begin, *lines.step]
        return [
            *lines.before, *([f"{names.count} = 0"] if lines.needs_count else []), f"for {names.epoch} in range({epochs}):",
            *indented(lines.epoch_begin), *indented([header, *indented(step)]), *indented(lines.epoch_end), *lines.behind,
        ]

    def is_handed_on(self, name: ast.Name, node: ast.AST) -> bool:
        """Return whether classes of the script take a Model. Raises NoRule for other uses than these and calls of its methods."""
        is_handed_on = False
        for use in self.facts.uses(name.id, node):
            outer = self.facts.functions_around(node)
            if any(name.id in bound_in(around) for around in self.facts.functions_around(use) if around not in outer):
                continue                                     # another variable
            parent = self.facts.parents.get(use)
            parent = self.facts.parents.get(parent) if isinstance(parent, ast.keyword) else parent
            if isinstance(parent, ast.Call) and use is not parent.func and self.facts.class_of(parent) is not None:
                is_handed_on = True
            elif not (isinstance(parent, ast.Attribute) and isinstance(self.facts.parents.get(parent), ast.Call)):
                raise NoRule("a Model that is handed on")
        return is_handed_on

    def evaluation_object(self, name: str, node: ast.Call) -> str:
        """Return the assignment of an object with the methods `eval` and `predict` of a Model. Raises NoRule."""
        model = self.facts.model_of(node)
        assert model is not None
        words = [self._part(node, "network"), self._part(node, "loss_fn") or "None"]
        if not model.is_default("metrics"):
            words.append(self._metrics(self.facts.value(model.nodes.get("metrics"))))
        return f"{name} = {self.rewriter.helper('Evaluation')}({', '.join(words)})"

    def _epochs(self, node: ast.expr) -> str:
        count = literal(node)
        return f"1, {count + 1}" if isinstance(count, int) else f"1, {self.rewriter.text(node, '+')} + 1"

    def _names_of_columns(self, dataset: ast.expr) -> list[str]:
        columns = self.datasets.columns(dataset) or ["data", "label"]
        named = [name if name.isidentifier() else "value" for name in columns]
        return [self.facts.fresh(name, f"{name}s") for name in named]

    def _loss(self, receiver: ast.expr, network: str, names: list[str]) -> str:
        loss_fn = self._part(receiver, "loss_fn")
        if not loss_fn:
            return f"{network}({', '.join(names)})"
        if len(names) != 2:
            raise NoRule(f"a loss of {len(names)} columns")
        return f"{loss_fn}({network}({names[0]}), {names[1]})"

    # ---- evaluation

    def _add_evaluation(self, receiver: ast.expr, bound: Bound, lines: Lines, epoch: str) -> None:
        result = f"{self._evaluation(receiver, bound.nodes['valid_dataset'])}"
        shown = f'print(f"Eval result: epoch {{{epoch}}}, metrics: {{{self.facts.fresh("results", "eval_results")}}}")'
        name = shown.rsplit("{", 1)[1].split("}")[0]
        statements = [f"{name} = {result}", shown]
        frequency = bound.nodes.get("valid_frequency")
        if frequency is not None and literal(frequency) != 1:
            statements = [f"if {epoch} % {self.rewriter.text(frequency, '+')} == 0:", *indented(statements)]
        lines.epoch_end += statements

    def evaluation(self, node: ast.Call) -> str:
        """Return the expression for `model.eval(dataset)`. Raises NoRule."""
        bound = bind(_EVAL, node)
        if not bound.is_default("callbacks") and literal(bound.nodes["callbacks"]) != []:
            raise NoRule("callbacks of an evaluation")
        return self._evaluation(node.func.value, bound.nodes["valid_dataset"])  # type: ignore[attr-defined]

    def _evaluation(self, receiver: ast.expr, dataset: ast.expr) -> str:
        model = self.facts.model_of(receiver)
        assert model is not None
        if len(self.datasets.columns(dataset) or (1, 2)) != 2:
            raise NoRule("an evaluation of other columns than data and labels")
        words = [self._part(receiver, "network"), self.datasets.loader(dataset)]
        words += [loss] if (loss := self._part(receiver, "loss_fn")) else ["None"]
        metrics = self._metrics(self.facts.value(model.nodes.get("metrics")))
        return f"{self.rewriter.helper('evaluate')}({', '.join([*words, metrics])})"

    def _metrics(self, node: ast.expr | None) -> str:
        if isinstance(node, ast.Dict):
            words = [f"{self.rewriter.text(key)}: {self.metric(value)}" for key, value in zip(node.keys, node.values) if key is not None]
            return "{" + ", ".join(words) + "}"
        if isinstance(node, (ast.Set, ast.List, ast.Tuple)):
            names = [literal(element) for element in node.elts]
            if not all(name in METRICS for name in names):
                raise NoRule("a metric without a counterpart")
            return "{" + ", ".join(f'"{name}": {self._metric_named(name)}' for name in names) + "}"
        raise NoRule("an evaluation without metrics")

    def _metric_named(self, name: str) -> str:
        helper, bracket, argument = METRICS[name].partition("(")
        return f"{self.rewriter.helper(helper)}({argument if bracket else ')'}"

    def metric(self, node: ast.expr) -> str:
        """Return a metric of torch. Raises NoRule."""
        value = self.facts.value(node)
        target = self.facts.class_of(value)
        if target is not None and user_classes.is_metric(*target) and target[1].name not in self.callbacks.omitted:
            return str(self.rewriter.text(node))
        name = self.facts.last_name(value)  # type: ignore[arg-type]
        if name not in METRICS or not isinstance(value, ast.Call):
            raise NoRule(f"the metric {ast.unparse(node)}")
        if METRICS[name].endswith(")"):
            return self._metric_named(name)
        arguments = ", ".join(self.rewriter.text(part) for part in [*value.args, *(keyword.value for keyword in value.keywords)])
        return f"{self.rewriter.helper(METRICS[name])}({arguments})"
