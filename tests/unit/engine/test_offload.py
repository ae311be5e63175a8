"""`memory_offload` and `set_offload_context`: less memory in both modes with equal bits, files that nobody sees, disks that are full."""
from __future__ import annotations

import contextlib
import gc
import os
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support import full_disk
from support.memory_use import most

from torchspore.base import once
from torchspore.context import effects
from torchspore.context.options import OPTIONS
from torchspore.context.public import scope, set_offload_context
from torchspore.context.store import STORE
from torchspore.engine.memory import backing_stores, offload, optimizer_offload, saved_tensors, unlinked_file
from torchspore.errors import OffloadFailed, OptionPathBlocked, OptionPathMissing, OptionValueError

ROWS = np.random.RandomState(0).randn(256, 256).astype(np.float32)
WEIGHT = np.random.RandomState(1).randn(256, 256).astype(np.float32) / 16


class Block(nn.Cell):
    """One of a transformer's MLPs, with dropout and a way around."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down, self.drop = nn.LayerNorm((32,)), nn.Dense(32, 64), nn.Dense(64, 32), nn.Dropout(p=0.1)

    def construct(self, x):
        return x + self.drop(self.down(ops.gelu(self.up(self.norm(x)))))


class Net(nn.Cell):
    def __init__(self, again: bool = False) -> None:
        super().__init__()
        self.blocks = nn.SequentialCell(*[Block() for _ in range(5)])
        for block in self.blocks if again else []:
            block.recompute()

    def construct(self, x):
        return (self.blocks(x) ** 2).mean()


@pytest.fixture
def moving(tmp_path: Path, mode: int) -> Iterator[Callable[..., Any]]:
    """A block in which values move to this test's folder, with more members of `offload_config`; in both modes."""

    def moving_with(**members: Any) -> Any:
        return _Moving({"offload_path": str(tmp_path), "enable_aio": False, **members}, mode)

    yield moving_with
    assert os.listdir(tmp_path) == []


class _Moving:
    def __init__(self, members: dict[str, Any], mode: int) -> None:
        self._members, self._scope = members, scope(mode=mode, memory_offload="ON")

    def __enter__(self) -> None:
        self._scope.__enter__()
        set_offload_context(self._members)

    def __exit__(self, *error: Any) -> None:
        self._scope.__exit__(*error)


def trained(folder: Path, recompute: bool = False) -> tuple[list[bytes], float]:
    """The bits of the losses, Parameters and state after two steps, and the peak of a third."""
    ms.set_seed(1)
    net = Net(recompute).set_train()
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-2)).set_train()
    x = Tensor(ROWS.reshape(2048, 32))
    results = [step(x).asnumpy().tobytes() for _ in range(2)]
    results += [p.asnumpy().tobytes() for p in (*net.get_parameters(), *step.optimizer.get_parameters())]
    return results, most(lambda: step(x), folder)


def test_a_step_takes_less_memory_with_equal_bits(moving: Any, tmp_path: Path) -> None:
    bits, before = trained(tmp_path)
    with moving():
        moved = backing_stores.totals.out
        result, after = trained(tmp_path)
        text = str(effects.outcome_of(OPTIONS["memory_offload"], True))
    assert result == bits
    assert after < 0.45 * before
    assert backing_stores.totals.out > moved
    assert text.startswith("applied: values")
    assert any("moved out in" in line for line in effects.notes()[offload.NOTES])


def test_threads_read_and_write_with_the_same_bits(moving: Any, tmp_path: Path) -> None:
    bits, _ = trained(tmp_path)
    with moving(enable_aio=True, aio_queue_depth=3, aio_block_size="0.0001GB"):
        assert trained(tmp_path)[0] == bits


def test_the_state_of_optimizers_leaves_memory(moving: Any, tmp_path: Path) -> None:
    def bits() -> list[bytes]:
        weight = ms.Parameter(Tensor(ROWS), name="w")
        net = nn.SequentialCell(nn.Dense(256, 256, weight_init=Tensor(WEIGHT), has_bias=False))
        step = nn.TrainOneStepCell(net, nn.AdamWeightDecay([*net.trainable_params(), weight], 0.1)).set_train()
        for _ in range(3):
            step(Tensor(ROWS))
        states.append(step)
        return [p.asnumpy().tobytes() for p in (*net.get_parameters(), *step.optimizer.get_parameters())]

    states: list[Any] = []
    expected = bits()
    with moving(offload_param="disk"):
        assert bits() == expected
        states[-1](Tensor(ROWS))
        assert _resident(tmp_path) == [0, 0, 0, 0]
        assert states[-1].optimizer.moments1[0].asnumpy().any()
        assert sorted(_resident(tmp_path)) == [0, 0, 0, 256]
    states.clear()
    gc.collect()
    assert _resident(tmp_path) == []


def _resident(folder: Path) -> list[int]:
    """The KiB in memory of each mapped file of a folder."""
    text = Path("/proc/self/smaps").read_text()
    return [int(size) for size in re.findall(rf" {folder}/\S* \(deleted\)\n(?:.*\n)*?Rss: +(\d+) kB", text)]


def test_recomputed_cells_leave_their_inputs_to_it(moving: Any, tmp_path: Path) -> None:
    bits, before = trained(tmp_path, recompute=True)
    with moving():
        moved = backing_stores.totals.out
        result, after = trained(tmp_path, recompute=True)
    assert (result, backing_stores.totals.out > moved) == (bits, True)
    assert after < before


def deep(x: Any) -> Any:
    for _ in range(16):
        x = ops.tanh(ops.matmul(x, Tensor(WEIGHT)))
    return (x * x).sum()


class Deep(nn.Cell):
    def construct(self, x):
        return deep(x)


def second(x: Any) -> Any:
    return ms.grad(lambda y: (ms.grad(deep)(y) ** 2).sum())(x)


def parts(x: Any) -> Any:
    """Values that show one memory, used near and far."""
    def inner(x: Any) -> Any:
        y = ops.exp(x * 0.1)
        near = (y[:128] * y[128:].T.reshape(128, 256)).sum() + ops.split(y, 64)[1].sum()
        return near + deep(y) + (y.reshape(16, -1) ** 2).sum() + y.expand_dims(0).broadcast_to((3, 256, 256)).mean()

    return ms.grad(inner)(x)


def compiled_inside(x: Any) -> Any:
    return ms.grad(lambda y: deep(ms.jit(deep)(y) * y))(x)


def looped(x: Any) -> Any:
    def inner(x: Any) -> Any:
        count = 0
        while count < 4:
            x = ops.tanh(ops.matmul(x, Tensor(WEIGHT)))
            count += 1
        return (x * ops.sigmoid(x) if x.sum() > 0 else x * ops.exp(x)).sum()

    return ms.grad(inner)(x)


def jacobians(x: Any) -> Any:
    return ms.grad(lambda y: ms.jacrev(lambda z: ops.tanh(z) ** 2)(y[:4, :4]).sum() + deep(y))(x)


@pytest.mark.parametrize("call", [second, parts, compiled_inside, looped, jacobians], ids=lambda call: call.__name__)
def test_gradients_have_the_same_bits(moving: Any, call: Any, mode: int) -> None:
    expected = call(Tensor(ROWS)).asnumpy()
    with moving(enable_aio=True):
        array = call(Tensor(ROWS)).asnumpy()
    assert np.array_equal(array, expected)


def test_tensors_written_to_are_refused_as_by_torch() -> None:
    disk = backing_stores.Disk("/tmp", None, 0, 1 << 20)
    w = torch.ones(256, 256, requires_grad=True)
    with saved_tensors.Tape(lambda device: disk).recording():
        y = torch.exp(w)
        result = (y * 2).sum() + torch.sigmoid(y).sum()
    y.data.add_(1)                                            # not counted, and not seen here either
    (y := y.detach()).add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_a_value_is_read_twice_and_its_region_is_freed() -> None:
    disk = backing_stores.Disk("/tmp", None, 2, 1 << 20)
    w = torch.ones(256, 256, requires_grad=True)
    with saved_tensors.Tape(lambda device: disk).recording():
        x = w
        for _ in range(12):
            x = torch.sin(torch.exp(x * 0.1))
        result = x.sum()
    del x
    first, = torch.autograd.grad(result, w, retain_graph=True)
    gradient, = torch.autograd.grad(result, w)
    assert torch.equal(first, gradient)
    assert disk.file.size > 0
    del result
    gc.collect()
    disk.file._merge()
    assert sum(size for _, size in disk.file._free) == disk.file.size
    assert disk.reading == set()


def test_an_error_in_the_backward_pass_leaves_nothing(moving: Any, mode: int) -> None:
    class Fails(nn.Cell):
        def construct(self, x):
            return x * 1

        def bprop(self, x, out, dout):
            raise ValueError("as it should")

    fails = Fails()
    expected = ms.grad(deep)(Tensor(ROWS)).asnumpy()
    with moving():
        sizes = []
        failing = ms.grad(lambda x: deep(fails(deep(x) * x)))
        for _ in range(3):
            with pytest.raises(ValueError, match="as it should"):
                failing(Tensor(ROWS))
            gc.collect()
            sizes.append(offload.disk().file.size)
        assert sizes[0] > 0
        assert sizes[1] == sizes[2]
        assert np.array_equal(ms.grad(deep)(Tensor(ROWS)).asnumpy(), expected)


@pytest.mark.parametrize("aio", [True, False])
def test_a_full_disk_ends_the_step_and_names_the_folder(moving: Any, tmp_path: Path, aio: bool) -> None:
    expected = ms.grad(Deep())(Tensor(ROWS)).asnumpy()
    with moving(enable_aio=aio):
        with full_disk.takes(1 << 20), pytest.raises(OffloadFailed) as raised:
            ms.grad(Deep())(Tensor(ROWS))
        assert re.fullmatch(
            rf"memory_offload: {tmp_path}: File too large \(a file without a name, [\d.]+ MiB so far, [\d.]+ KiB more\).\n\n"
            r"hint: name a folder with more room, set_offload_context\(\{'offload_path': ...\}\), or a limit, 'offload_disk_size'.",
            str(raised.value),
        )
        assert np.array_equal(ms.grad(Deep())(Tensor(ROWS)).asnumpy(), expected)


def test_a_full_disk_leaves_the_state_of_optimizers_as_it_is(moving: Any, tmp_path: Path) -> None:
    weight = ms.Parameter(Tensor(ROWS), name="w")
    optimizer = nn.Momentum([weight], 0.1, 0.9)
    with moving(offload_param="disk"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The step ended in its middle")        # graph mode: the update ran, the counter of steps did not
        with full_disk.takes(1 << 14), pytest.raises(OffloadFailed, match=re.escape(str(tmp_path))):
            optimizer((Tensor(ROWS),))
        assert np.isfinite(optimizer.moments[0].asnumpy()).all()


def test_the_file_stays_below_its_limit(moving: Any) -> None:
    expected = ms.grad(Deep())(Tensor(ROWS)).asnumpy()
    with moving(offload_disk_size="0.001GB"):
        refused = backing_stores.totals.refused
        assert np.array_equal(ms.grad(Deep())(Tensor(ROWS)).asnumpy(), expected)
        assert 0 < offload.disk().file.largest <= 0.001 * 2**30
    assert backing_stores.totals.refused > refused


@pytest.mark.parametrize(("members", "moves"), [
    ({"auto_offload": False}, False), ({"auto_offload": False, "offload_checkpoint": "disk"}, True), ({"offload_checkpoint": "cpu"}, False),
    ({"hbm_ratio": 1.0}, False), ({"hbm_ratio": 1e-4}, True),
])
def test_what_moves(moving: Any, members: dict[str, Any], moves: bool) -> None:
    with moving(**members):
        before = backing_stores.totals.out
        ms.grad(Deep())(Tensor(ROWS))
        assert (backing_stores.totals.out > before) is moves


def test_every_key_says_what_came_of_it(moving: Any) -> None:
    members = {
        "offload_param": "disk", "offload_checkpoint": "disk", "offload_cpu_size": "1GB", "offload_disk_size": "1GB", "enable_aio": True,
        "aio_block_size": "0.01GB", "aio_queue_depth": 2, "enable_pinned_mem": True, "auto_offload": True, "host_mem_block_size": "1GB",
        "cpu_ratio": 0.5, "hbm_ratio": 0.5,
    }
    with moving(**members):
        states_of = {name: effects.outcome_of(OPTIONS["offload.offload_config." + name], value) for name, value in members.items()}
        assert {name for name, outcome in states_of.items() if outcome.state == effects.NO_EFFECT} == {
            "offload_cpu_size", "enable_pinned_mem", "host_mem_block_size", "cpu_ratio",
        }
        assert all(outcome.state in (effects.APPLIED, effects.NO_EFFECT) and outcome.text for outcome in states_of.values())
    with scope():
        set_offload_context({"cpu_ratio": 0.5})
        assert str(effects.outcome_of(OPTIONS["offload.offload_config"], {"cpu_ratio": 0.5})) == (
            "no effect here: cpu_ratio: memory_offload is OFF"
        )


@pytest.mark.parametrize(("path", "kind", "reason"), [
    ("/nowhere/at/all", OptionPathMissing, "there is no folder /nowhere/at"),
    ("/etc/passwd", OptionPathBlocked, "/etc/passwd is a file, not a folder"),
])
def test_folders_that_can_not_be(path: str, kind: type[Exception], reason: str) -> None:
    with scope(memory_offload="ON"), pytest.raises(kind) as raised:
        set_offload_context({"offload_path": path})
    assert str(raised.value) == (
        f"set_offload_context(offload_path={path!r}): {reason}.\n\n"
        "hint: name a folder that you may write to; only its last component is created if it is missing."
    )


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
def test_names_that_no_folder_has(path: str) -> None:
    with pytest.raises(OptionValueError, match="expected the path of a directory"):
        set_offload_context({"offload_path": path})


def test_a_folder_that_is_gone_when_it_is_needed(tmp_path: Path) -> None:
    with scope(mode=ms.PYNATIVE_MODE, memory_offload="ON"):
        (tmp_path / "above").mkdir()
        set_offload_context({"offload_path": str(tmp_path / "above/offload")})
        (tmp_path / "above").rmdir()
        with pytest.raises(OffloadFailed, match=r"cannot create a file in .*above/offload: No such file or directory"):
            ms.grad(deep)(Tensor(ROWS))


def test_a_missing_folder_is_created_only_briefly(tmp_path: Path) -> None:
    file = unlinked_file.NamelessFile(str(tmp_path / "offload"))
    at = file.take(3)
    file.write(memoryview(b"abc"), at, 2)
    back = bytearray(3)
    file.read(memoryview(back), at, 2)
    assert (bytes(back), os.listdir(tmp_path)) == (b"abc", [])


def test_ratios_of_nothing_are_refused() -> None:
    with pytest.raises(OptionValueError, match=r"above 0\.0 and up to 1\.0"):
        set_offload_context({"hbm_ratio": 0.0})


def test_o1_switches_it_off_with_a_warning(mode: int) -> None:
    with warnings.catch_warnings(record=True) as caught, once.anew(), contextlib.ExitStack() as stack:
        warnings.simplefilter("always")
        stack.enter_context(scope(mode=mode, memory_optimize_level="O1", memory_offload="ON"))
        before = backing_stores.totals.out
        ms.grad(Deep())(Tensor(ROWS))
        outcome = effects.outcome_of(OPTIONS["memory_offload"], STORE.get("memory_offload"))
    assert backing_stores.totals.out == before
    assert str(outcome).startswith("no effect here: memory_optimize_level O1 plans")
    assert {str(w.message) for w in caught} == {
        "memory_offload has no effect: memory_optimize_level O1 plans the memory of graphs itself, and switches offloading off."
    }


def test_regions_are_reused_and_joined() -> None:
    file = unlinked_file.NamelessFile("/tmp")
    first, second, third = (file.take(5000) for _ in range(3))
    assert (first, second, third, file.size) == (0, 8192, 16384, 24576)
    file.give(first, 5000)
    file.give(second, 5000)
    assert file.take(16000) == 0
    assert file.take(1) == 24576


def test_state_on_another_device_comes_for_its_step() -> None:
    """What a step on an accelerator does, with the CPU in its place."""
    state = ms.Parameter(Tensor(ROWS), name="m")
    home = state._t
    with optimizer_offload.on_device([state], torch.device("cpu"), pinned=False):
        there = state._t
        assert there.data_ptr() != home.data_ptr()
        there.add_(1)
    assert state._t.data_ptr() != there.data_ptr()
    assert np.array_equal(state.asnumpy(), ROWS + 1)
