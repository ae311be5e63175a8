"""A ported script beside the original: three training steps with the same weights and rows, losses and weights compared.

Both run with the same seeds, without shuffles and dropout; the original in PyNative mode. Each is stopped after its third update.
"""
from __future__ import annotations

import contextlib
import io
import math
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

import torchspore.mindspore as ms
from torchspore.engine.tensors.tensor import raw
from torchspore.graph import dispatch
from torchspore.mindspore import amp, context
from torchspore.mindspore import nn as mindspore_nn
from torchspore.mindspore.dataset.engine import dataset, datasets_records, samplers, streams
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train import amp as train_amp
from torchspore.port.training.precision import WITHOUT_SCALE
from torchspore.port.verification import rounding
from torchspore.port.verification.comparison import Verdict, _difference
from torchspore.port.verification.fixed_draws import fixed_draws
from torchspore.port.verification.lower_precision import TOLERANCE_OF_AUTOCAST, LowestPrecision
from torchspore.port.verification.parameter_matches import copied_parameters
from torchspore.port.verification.recorded_run import Recorder
from torchspore.port.verification.results import CannotVerify
from torchspore.port.verification.without_dropout import without_dropout

STEPS = 3
_NO_STEP = "the script makes no training step"
nn: Any = mindspore_nn
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


class _Stop(BaseException):
    """The last step is done."""


@dataclass
class Steps:
    """The losses and weights of a script's steps."""

    losses: list[float] = field(default_factory=list)
    weights: list[list[torch.Tensor]] = field(default_factory=list)
    """The values of the trained parameters after each update."""
    gradients: list[list[float]] = field(default_factory=list)
    """The largest gradient of each parameter in each step."""
    lowest: LowestPrecision = field(default_factory=LowestPrecision)
    error: str = ""


@dataclass
class Trained:
    """The original's optimizers: their Parameters, the first values, and the Cells that the script created."""

    groups: list[list[Any]] = field(default_factory=list)
    """The Parameters of each optimizer of the script, in the order in which it creates them."""
    called: set[int] = field(default_factory=set)
    """The numbers of the optimizers that the steps call."""
    initial: dict[int, torch.Tensor] = field(default_factory=dict)
    cells: list[Any] = field(default_factory=list)

    @property
    def parameters(self) -> list[Any]:
        """The Parameters of all optimizers."""
        return list({id(parameter): parameter for group in self.groups for parameter in group}.values())


def verify(path: str, text: str, namespace_of: Callable[[str], Any]) -> list[Verdict]:
    """Compare three steps of a script, and where it has mixed precision three more in it; `namespace_of` runs the text of the port."""
    verdict = _compared(path, text, namespace_of, in_single=True)
    is_lowered = "torch.autocast(" in text
    if not is_lowered or verdict.reason:
        verdict.precision += ", without mixed precision" if is_lowered else ", without to_float" if "torch.autocast" in text else ""
        return [verdict]
    lower = _compared(path, text, namespace_of, in_single=False)
    if lower.reason.startswith(_NO_STEP):
        verdict.precision = "float32 (mixed precision was not compared: its first steps overflow)"
        return [verdict]
    verdict.precision += ", without mixed precision"
    lower.tolerance = TOLERANCE_OF_AUTOCAST[torch.bfloat16 if "dtype=torch.bfloat16" in text else torch.float16]
    lower.precision = f"mixed precision, tolerance {lower.tolerance:.0e}"
    return [verdict, lower]


def _compared(path: str, text: str, namespace_of: Callable[[str], Any], in_single: bool) -> Verdict:
    """Compare three steps of a script; `in_single`: without mixed precision."""
    expected, trained = _original(path, in_single)
    name = os.path.basename(path)
    if not expected.losses or not expected.weights:
        return Verdict(name, reason=f"{_NO_STEP}: {expected.error or 'no optimizer was called'}")
    actual = _ported(path, text, trained, namespace_of, in_single)
    if len(actual.weights) < len(expected.weights):
        return Verdict(name, reason=f"the port ends after {len(actual.weights)} steps: {actual.error}")
    count = len(expected.weights)
    if WITHOUT_SCALE in text or "torch.amp.GradScaler(" in text:
        expected.losses = _unscaled(expected.losses, actual.losses)
    loss = max((_difference([torch.tensor(a)], [torch.tensor(b)]) for a, b in zip(expected.losses, actual.losses)), default=float("inf"))
    if not any(math.isfinite(value) for value in expected.losses):
        return Verdict(name, reason="the losses of the original are not finite")
    moved = [first or second for first, second in zip(_moved(expected), _moved(actual))]
    moved = moved if any(moved) else [True] * len(moved)
    pairs = [(a, b.reshape(a.shape)) for first, second in zip(expected.weights, actual.weights)
             for a, b, is_moved in zip(first, second, moved) if is_moved]
    weights = _difference([a for a, _ in pairs], [b for _, b in pairs])
    verdict = Verdict(name, loss, weights, len(trained.parameters), steps=count)
    if in_single and not verdict.is_equal and loss <= verdict.tolerance:
        _compare_stable(verdict, path, expected, actual, moved)
    if in_single and actual.lowest.dtypes:
        verdict.tolerance = actual.lowest.tolerance
        verdict.precision += f" and {actual.lowest.names}, tolerance {verdict.tolerance:.0e}"
    return verdict


def _compare_stable(verdict: Verdict, path: str, expected: Steps, actual: Steps, moved: list[bool]) -> None:
    """Leave out the weights whose difference is as large as the one between the original and the original with changed first weights."""
    noisy = [_original(path, True, noise=seed)[0] for seed in (1, 2)]
    if any(len(run.weights) != len(expected.weights) for run in noisy):
        return
    flat = [[weight.reshape(-1) for step in run.weights for weight, is_moved in zip(step, moved) if is_moved]
            for run in (expected, actual, *noisy)]
    difference, unstable = rounding.compare_stable(flat[0], flat[1], flat[2:], verdict.tolerance)
    if difference < verdict.gradient:
        verdict.gradient, verdict.unstable = difference, unstable


def _unscaled(expected: list[float], actual: list[float]) -> list[float]:
    """Return the losses without the original's loss scale, a power of 2."""
    if not actual or not actual[0]:
        return expected
    scale = 2.0 ** round(math.log2(abs(expected[0] / actual[0]) or 1.0))
    return [loss / scale for loss in expected]


def _moved(steps: Steps) -> list[bool]:
    """Return for each parameter whether its gradients are more than rounding, which some optimizers turn into full steps."""
    largest = [max(values) for values in zip(*steps.gradients)]
    return [value > 1e-6 * max(largest) for value in largest]


def _size_of_gradient(gradient: Any) -> float:
    """Return the largest value of a gradient."""
    values = gradient.values if isinstance(gradient, ms.RowTensor) else gradient
    return float(raw(values).detach().abs().max()) if isinstance(values, ms.Tensor) and values.size else 0.0


def _seed() -> None:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    ms.set_seed(0)


@contextlib.contextmanager
def _as_program(path: str) -> Iterator[None]:
    """Run as `python path`, without output."""
    before = sys.argv
    sys.argv = [path]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        sys.argv = before
        sys.path.pop(0)


@contextlib.contextmanager
def _without_random_numbers() -> Iterator[None]:
    """While it lasts, dropout is the identity, and draws depend on their shape alone."""
    with without_dropout(), fixed_draws():
        yield


@contextlib.contextmanager
def _without_chance(in_single: bool) -> Iterator[None]:
    """While it lasts, MindSpore's data sets keep their order, and dropout is the identity; all runs in PyNative mode."""
    set_context = context.set_context

    def set_other(**options: Any) -> None:
        options.pop("mode", None)
        if options:
            set_context(**options)

    with contextlib.ExitStack() as stack:
        stack.enter_context(_without_random_numbers())
        for home in (context, ms):
            stack.enter_context(mock.patch.object(home, "set_context", set_other))
        in_order = lambda sampler, count, _: range(sampler._limited_(count))
        stack.enter_context(mock.patch.object(samplers.RandomSampler, "_positions_", in_order))
        stack.enter_context(mock.patch.object(dataset.Dataset, "shuffle", lambda rows, *_, **__: rows))
        for home in (streams, datasets_records):             # the order of files
            stack.enter_context(mock.patch.object(home, "shuffle_kind", lambda _: None))
        for layer in _DROPOUTS:
            stack.enter_context(mock.patch.object(layer, "construct", lambda _, x: x))
        stack.enter_context(mock.patch.object(dispatch, "call", lambda _, function, args, kwargs: function(*args, **kwargs)))     # jit
        if in_single:
            stack.enter_context(mock.patch.object(Cell, "to_float", lambda cell, _: cell))
            for home in (train_amp, amp):
                stack.enter_context(mock.patch.object(home, "lower_precision", lambda network, *_, **__: network))
                stack.enter_context(mock.patch.object(home, "choose_by_operator", lambda network, *_: network))
        set_context(mode=context.PYNATIVE_MODE)
        yield


def _original(path: str, in_single: bool, noise: int = 0) -> tuple[Steps, Trained]:
    """Run the script until its third update; `noise`: a seed for small changes of its first weights."""
    import runpy

    steps, trained = Steps(), Trained()
    update, differentiate = nn.Optimizer.__call__, torch.autograd.grad
    recorder = Recorder(set())
    optimizers: list[Any] = []

    def call(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if not trained.groups:
            cells = [created[0] for created in recorder.recording.creations.values()]
            optimizers.extend(cell for cell in cells if isinstance(cell, nn.Optimizer))
            trained.groups = [list(each.parameters) for each in optimizers]
            trained.cells = [cell for cell in cells if isinstance(cell, Cell)]
            others = {id(p): raw(p).detach().clone() for cell in trained.cells for p in cell.get_parameters()}
            trained.initial = {**others, **trained.initial, **{id(p): raw(p).detach().clone() for p in trained.parameters}}
        trained.called |= {number for number, each in enumerate(optimizers) if each is optimizer}
        sizes = {id(p): _size_of_gradient(gradient) for p, gradient in zip(optimizer.parameters, args[0] if args else ())}
        steps.gradients.append([sizes.get(id(p), 0.0) for p in trained.parameters])
        result = update(optimizer, *args, **kwargs)
        steps.weights.append([raw(p).detach().clone() for p in trained.parameters])
        if len(steps.weights) == STEPS:
            raise _Stop
        return result

    def gradient(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        _note_loss(steps, outputs)
        return differentiate(outputs, *args, **kwargs)

    create = nn.Optimizer.__init__

    def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        create(optimizer, *args, **kwargs)
        cells = [created[0] for created in recorder.recording.creations.values() if "_params" in vars(created[0])]
        for parameter in (parameter for cell in cells if not isinstance(cell, nn.Optimizer) for parameter in cell.get_parameters()):
            trained.initial.setdefault(id(parameter), raw(parameter).detach().clone())           # a step may write into frozen ones
        if noise:
            rounding.add_noise([raw(parameter) for parameter in optimizer.parameters], noise)

    with _without_chance(in_single), _as_program(path), recorder.active(), mock.patch.object(nn.Optimizer, "__call__", call), \
            mock.patch.object(nn.Optimizer, "__init__", init), mock.patch.object(torch.autograd, "grad", gradient):
        _seed()
        try:
            runpy.run_path(path, run_name="__main__")
        except (_Stop, SystemExit):
            pass
        except Exception as error:
            steps.error = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    return steps, trained


def _note_loss(steps: Steps, outputs: Any) -> None:
    first = outputs[0] if isinstance(outputs, (list, tuple)) else outputs
    if isinstance(first, torch.Tensor) and first.numel() == 1 and len(steps.losses) <= len(steps.weights):
        steps.losses.append(float(first.detach()))


def _ported(path: str, text: str, trained: Trained, namespace_of: Callable[[str], Any], in_single: bool) -> Steps:
    """Run the port with the original's first weights, until its third update."""
    steps = Steps()
    modules: list[torch.nn.Module] = []
    matched: dict[int, list[torch.Tensor]] = {}
    """The tensors of each group of the original's Parameters."""
    create, backward, differentiate = torch.nn.Module.__init__, torch.Tensor.backward, torch.autograd.grad

    def init(module: Any, *args: Any, **kwargs: Any) -> None:
        create(module, *args, **kwargs)
        modules.append(module)

    def begin(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        number = _group_of(trained, optimizer, set(matched))
        if number is not None:
            matched[number] = _matched(trained, modules, optimizer, trained.groups[number])

    def end(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        targets = _targets(trained, matched)
        steps.weights.append([_NONE if target is None else target.detach().clone() for target in targets])
        steps.gradients.append([0.0 if target is None or target.grad is None else float(target.grad.abs().max()) for target in targets])
        if len(steps.weights) == STEPS:
            raise _Stop

    def noted_backward(loss: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        _note_loss(steps, loss)
        return backward(loss, *args, **kwargs)

    def noted_grad(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        _note_loss(steps, outputs)
        return differentiate(outputs, *args, **kwargs)

    create_optimizer = torch.optim.Optimizer.__init__

    def new_optimizer(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        create_optimizer(optimizer, *args, **kwargs)
        begin(optimizer)

    hook = register_optimizer_step_post_hook(end)
    with contextlib.ExitStack() as stack:
        stack.callback(hook.remove)
        stack.enter_context(_without_random_numbers())
        for home, name, new in (
            (torch.nn.Module, "__init__", init), (torch.Tensor, "backward", noted_backward), (torch.autograd, "grad", noted_grad),
            (torch.optim.Optimizer, "__init__", new_optimizer), (torch.nn.Dropout, "forward", lambda _, x: x),
            (torch.utils.data, "RandomSampler", torch.utils.data.SequentialSampler),
            (torch, "autocast", (lambda *_, **__: contextlib.nullcontext()) if in_single else torch.autocast),
            (torch.utils.data.dataloader, "RandomSampler", lambda dataset, **_: torch.utils.data.SequentialSampler(dataset)),
        ):
            stack.enter_context(mock.patch.object(home, name, new))
        stack.enter_context(_as_program(path))
        _seed()
        try:
            with steps.lowest:
                namespace_of(text)
        except (_Stop, SystemExit):
            pass
        except Exception as error:
            steps.error = f"{type(error).__name__}: {str(error).strip()}"
    return steps


def _targets(trained: Trained, matched: dict[int, list[torch.Tensor]]) -> list[torch.Tensor | None]:
    """Return the port's tensors of all Parameters. Raises CannotVerify if the port lacks an optimizer that a step calls."""
    if trained.called - set(matched):
        raise CannotVerify(f"the port has {len(matched)} of {len(trained.called)} optimizers")
    by_parameter = {id(p): target for number, group in matched.items() for p, target in zip(trained.groups[number], group)}
    return [by_parameter.get(id(parameter)) for parameter in trained.parameters]


_NONE = torch.zeros(0)
"""Instead of a parameter of an optimizer that no step calls, and that the port lacks."""


def _group_of(trained: Trained, optimizer: torch.optim.Optimizer, taken: set[int]) -> int | None:
    """Return the number of the original's optimizer with parameters of these sizes; None if all of them are taken."""
    sizes = sorted(parameter.numel() for group in optimizer.param_groups for parameter in group["params"] if parameter.requires_grad)
    free = [number for number in range(len(trained.groups)) if number not in taken]
    equal = [number for number in free if sorted(raw(parameter).numel() for parameter in trained.groups[number]) == sizes]
    return next(iter([*equal, *(number for number in free if not taken)]), None)


def _matched(
    trained: Trained, modules: list[torch.nn.Module], optimizer: torch.optim.Optimizer, parameters: list[Any],
) -> list[torch.Tensor]:
    """Write the original's first weights into the port's; return the tensors of an optimizer's Parameters in their order.

    Raises CannotVerify if the port has no counterpart for one.
    """
    needed = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    module = _smallest(modules, lambda each: {id(p) for p in each.parameters()}, needed)
    cell = _smallest(trained.cells, lambda each: {id(p) for p in each.get_parameters()}, set(map(id, parameters)))
    if module is None or cell is None:
        raise CannotVerify("the optimizer's parameters are not those of one network")
    targets: dict[int, torch.Tensor] = {}
    with torch.no_grad():
        for _, parameter, target in copied_parameters(cell, module):
            targets[id(parameter)] = target
            if isinstance(target, torch.nn.Parameter) and id(parameter) in trained.initial:
                target.copy_(trained.initial[id(parameter)].reshape(target.shape))
    _copy_others(trained, modules)
    missing = [parameter.name for parameter in parameters if id(parameter) not in targets]
    if missing:
        raise CannotVerify(f"the port has no counterpart of {missing[0]}")
    return [targets[id(parameter)] for parameter in parameters]


def _copy_others(trained: Trained, modules: list[torch.nn.Module]) -> None:
    """Write the original's first weights into the port's other Modules, such as a teacher: those of one class in their order."""
    optimized = {id(parameter) for parameter in trained.parameters}
    for name in dict.fromkeys(type(cell).__name__ for cell in trained.cells if not type(cell).__module__.startswith("torchspore.")):
        cells = [cell for cell in trained.cells if type(cell).__name__ == name]
        counterparts = [module for module in modules if type(module).__name__ == name]
        for cell, module in zip(cells, counterparts) if len(cells) == len(counterparts) else ():
            with contextlib.suppress(CannotVerify), torch.no_grad():
                for _, parameter, target in copied_parameters(cell, module):
                    is_other = id(parameter) not in optimized and id(parameter) in trained.initial
                    if is_other and isinstance(target, torch.nn.Parameter) and target.numel() == trained.initial[id(parameter)].numel():
                        target.copy_(trained.initial[id(parameter)].reshape(target.shape))


def _smallest(owners: list[Any], parameters: Callable[[Any], set[int]], needed: set[int]) -> Any:
    """Return the innermost owner of all of these parameters."""
    containing = [(len(owned), _size(owner), index, owner) for index, owner in enumerate(owners) if needed <= (owned := parameters(owner))]
    return min(containing, key=lambda item: item[:3])[3] if containing else None


def _size(owner: Any) -> int:
    """Return how many layers a Cell or a Module has."""
    return sum(1 for _ in (owner.cells_and_names() if isinstance(owner, Cell) else owner.modules()))
