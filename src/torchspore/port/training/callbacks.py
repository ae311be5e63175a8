"""The callbacks of a training as lines of the loop."""
from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from torchspore.port.analysis.definitions import File
from torchspore.port.rules.rule import Bound, NoRule, bind, declare, literal
from torchspore.port.training import user_classes
from torchspore.port.training.facts import CALLBACKS, Facts

_LOSS_MONITOR = declare("LossMonitor(per_print_times=1)", "").parameters
_CHECKPOINT = declare("ModelCheckpoint(prefix='CKP', directory=None, config=None)", "").parameters
_CONFIG = declare("CheckpointConfig(save_checkpoint_steps=1, save_checkpoint_seconds=0, keep_checkpoint_max=5)", "").parameters
_SCHEDULER = declare("LearningRateScheduler(learning_rate_function)", "").parameters


class Lines:
    """The lines of a loop, by their position: before it, in an epoch, in a step, behind it."""

    def __init__(self) -> None:
        self.before: list[str] = []
        self.epoch_begin: list[str] = []
        self.step_begin: list[str] = []
        self.step: list[str] = []
        self.epoch_end: list[str] = []
        self.behind: list[str] = []
        self.needs_step = self.needs_count = self.can_stop = False


@dataclass
class Names:
    """The names and expressions of a loop."""

    network: str
    optimizer: str
    loss_fn: str
    loss: str
    dataset: str
    epochs: str
    """The number of epochs."""
    epoch: str
    step: str
    count: str
    run: str = ""
    """The state of the training, if callbacks of the user read it."""


class CallbackWriter:
    """Writes callbacks."""

    def __init__(self, rewriter: Any, facts: Facts, omitted: set[str]) -> None:
        self.rewriter, self.facts, self.omitted = rewriter, facts, omitted

    def is_callback(self, node: ast.expr) -> bool:
        """Return whether an expression is a callback that the loop can have."""
        value = self.facts.value(node)
        return value is not None and (self.facts.last_name(value) in CALLBACKS or self._class_of(value) is not None)

    def _class_of(self, node: ast.AST) -> tuple[File, ast.ClassDef] | None:
        """Return the user's class of a callback, and its file; None if the port omits it."""
        target = self.facts.class_of(node)
        if target is None or target[1].name in self.omitted or not user_classes.is_callback(*target):
            return None
        return target

    def add_all(self, node: ast.expr | None, lines: Lines, names: Names, has_evaluation: bool = False) -> None:
        """Add the lines of the callbacks of a training, which may evaluate in between. Raises NoRule if the file does not show them."""
        value = self.facts.value(node)
        if value is None or literal(value) is None:
            return
        elements = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value if node is value else node]
        if isinstance(node, ast.Name) and self._is_changed(node):
            raise NoRule("a list of callbacks that the script changes")
        for element in elements:
            assert element is not None
            if not self.is_callback(element):
                text = self.facts.value(element)
                raise NoRule(f"the callback {ast.unparse(text) if text is not None else ''}")
            if has_evaluation:
                self._check_evaluation(element)
        for element in elements:
            self._add(element, lines, names)                 # type: ignore[arg-type]
        if lines.can_stop:
            stop = [f"if {names.run}.get_stop_requested():", "    break"]
            lines.step += stop
            lines.epoch_end += stop

    def _check_evaluation(self, element: ast.expr) -> None:
        """Raises NoRule for a callback of the user whose methods MindSpore calls in an evaluation too."""
        target = self._class_of(self.facts.value(element))       # type: ignore[arg-type]
        methods = user_classes.hooks(*target).values() if target is not None else ()
        for method in methods:
            if not method.startswith("on_train_"):
                raise NoRule(f"{method} of a callback in fit, which evaluations call too: name it on_train_{method}")

    def _is_changed(self, node: ast.Name) -> bool:
        changing = (ast.Attribute, ast.AugAssign, ast.Subscript)
        return any(isinstance(self.facts.parents.get(use), changing) for use in self.facts.uses(node.id, node)) or any(
            isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name) and part.target.id == node.id
            for part in self.facts.source.nodes)

    def _add(self, element: ast.expr, lines: Lines, names: Names) -> None:
        value = self.facts.value(element)
        assert isinstance(value, ast.Call)
        name = self.facts.last_name(value)
        if name in _WRITERS:
            getattr(self, _WRITERS[name])(value, lines, names)
        else:
            self._add_of_user(element, value, lines, names)

    def _add_of_user(self, element: ast.expr, value: ast.Call, lines: Lines, names: Names) -> None:
        """Call the methods of a callback that the script defines."""
        target = self._class_of(value)
        assert target is not None
        if not names.run:
            names.run = self.facts.fresh("run", "run_context")
            arguments = [names.network, names.optimizer, names.loss_fn or "None", names.dataset, names.epochs]
            lines.before.append(f"{names.run} = {self.rewriter.helper('RunContext')}({', '.join(arguments)})")
            lines.epoch_begin.insert(0, f"{names.run}.cur_epoch_num = {names.epoch}")
            lines.step_begin.insert(0, f"{names.run}.cur_step_num += 1")
            lines.step.append(f"{names.run}.net_outputs = {names.loss}.detach()")
        text = str(self.rewriter.text(element))
        if not isinstance(element, ast.Name):
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", target[1].name).lower()
            variable = self.facts.fresh(words, f"{words}_callback")
            lines.before.append(f"{variable} = {text}")
            text = variable
        positions = {"begin": lines.before, "epoch_begin": lines.epoch_begin, "step_begin": lines.step_begin, "step_end": lines.step,
                     "epoch_end": lines.epoch_end, "end": lines.behind}
        for position, method in user_classes.hooks(*target).items():
            positions[position].append(f"{text}.{method}({names.run})")
        lines.can_stop = lines.can_stop or user_classes.can_stop(*target)

    def _loss_monitor(self, node: ast.Call, lines: Lines, names: Names) -> None:
        bound = bind(_LOSS_MONITOR, node)
        shown = f'print(f"epoch: {{{names.epoch}}} step: {{{names.step}}}, loss is {{{names.loss}.item()}}")'
        times = bound.nodes.get("per_print_times")
        lines.needs_step = True
        if times is None or literal(times) == 1:
            lines.step.append(shown)
        elif literal(times) != 0:
            lines.needs_count = True
            lines.step += [f"if {names.count} % {self.rewriter.text(times, '+')} == 0:", f"    {shown}"]

    def _time_monitor(self, node: ast.Call, lines: Lines, names: Names) -> None:
        start, duration = self.facts.fresh("start", "start_time"), self.facts.fresh("milliseconds", "epoch_milliseconds")
        self.rewriter.needs_time = True
        lines.needs_step = True
        lines.epoch_begin.append(f"{start} = time.perf_counter()")
        lines.epoch_end += [
            f"{duration} = 1000 * (time.perf_counter() - {start})",
            f'print(f"Train epoch time: {{{duration}:5.3f}} ms, per step time: {{{duration} / {names.step}:5.3f}} ms")',
        ]

    def _checkpoint(self, node: ast.Call, lines: Lines, names: Names) -> None:
        bound = bind(_CHECKPOINT, node)
        config = self.facts.value(bound.nodes.get("config"))
        settings = Bound(defaults={"save_checkpoint_steps": ast.Constant(1), "keep_checkpoint_max": ast.Constant(5)})
        if config is not None and literal(config) is not None:
            if self.facts.last_name(config) != "CheckpointConfig" or not isinstance(config, ast.Call):
                raise NoRule("a CheckpointConfig that the file does not show")
            settings = bind(_CONFIG, config)
        if not settings.is_default("save_checkpoint_seconds") and "save_checkpoint_seconds" in settings.nodes:
            raise NoRule("save_checkpoint_seconds")
        name = self.facts.fresh("checkpoints")
        text = lambda node_bound, key: str(self.rewriter.text(node_bound.nodes[key])) if key in node_bound.nodes else None
        words = [word for word in (
            text(bound, "prefix") or "'CKP'", f"directory={text(bound, 'directory')}" if "directory" in bound.nodes else "",
            f"most={text(settings, 'keep_checkpoint_max')}" if "keep_checkpoint_max" in settings.nodes else "") if word]
        lines.before.append(f"{name} = {self.rewriter.helper('Checkpoints')}({', '.join(words)})")
        saved = f'{name}.save({names.network}, f"{{{names.epoch}}}_{{{names.step}}}")'
        steps = text(settings, "save_checkpoint_steps") or "1"
        lines.needs_step = True
        lines.needs_count = lines.needs_count or steps != "1"
        lines.step += [f"if {names.count} % {steps} == 0:", f"    {saved}"] if steps != "1" else [saved]
        lines.behind.append(saved)

    def _rate_scheduler(self, node: ast.Call, lines: Lines, names: Names) -> None:
        function = self.rewriter.text(bind(_SCHEDULER, node).nodes["learning_rate_function"], ".")
        lines.needs_count = True
        lines.step += [f"for group in {names.optimizer}.param_groups:", f'    group["lr"] = {function}(group["lr"], {names.count})']


_WRITERS = {
    "LossMonitor": "_loss_monitor", "TimeMonitor": "_time_monitor", "ModelCheckpoint": "_checkpoint",
    "LearningRateScheduler": "_rate_scheduler",
}


def indented(lines: list[str]) -> list[str]:
    """Return lines one level deeper."""
    return [f"    {line}" for line in lines]
