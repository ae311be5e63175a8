"""What torchspore asks of an accelerator, seen on a stand-in that counts (tests/stand_in): nothing here has run on a GPU.

A training step hands work over and goes on: no transfer, no wait. Each program runs in a process of its own, on both devices.
"""
from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from support import processes

TESTS = Path(__file__).parents[2]

HEAD = """
import json, sys
sys.path.insert(0, {tests!r})
import torchspore; torchspore.install()
import mindspore as ms, numpy as np, stand_in, torch
from mindspore import nn, ops, Tensor, amp
if {device!r} == "GPU":
    stand_in.begin()
ms.set_context(device_target={device!r}, mode={mode})
told = {{}}
rng = np.random.RandomState(0)
floats = lambda *shape: rng.randn(*shape).astype(np.float32)
ints = lambda high, *shape: rng.randint(0, high, shape).astype(np.int32)
"""

TRAINING = """
class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding, self.place = nn.Embedding(50, 16), ms.Parameter(Tensor(floats(8, 16)))
        self.norm, self.attention = nn.LayerNorm((16,)), nn.MultiheadAttention(16, 2, batch_first=True)
        self.out, self.mask = nn.Dense(16, 50), ops.triu(ops.ones((8, 8), ms.bool_), 1)

    def construct(self, x):
        h = self.norm(self.embedding(x) + self.place)
        return self.out(h + self.attention(h, h, h, attn_mask=self.mask, need_weights=False)[0]).reshape(-1, 50)


images = lambda: nn.SequentialCell(
    nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(4, 50))
loss_of = nn.CrossEntropyLoss()


def cell(net, optimizer):
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_of), optimizer)
    step.set_train()
    return step


def clipped(net):
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, net.trainable_params())
    optimizer = nn.SGD(net.trainable_params(), 0.1)

    def step(x, y):
        loss, grads = gradient(x, y)
        optimizer(ops.clip_by_global_norm(grads, 1.0))
        return loss

    return step


def scaled(net):
    scaler, optimizer = amp.DynamicLossScaler(1024, 2, 50), nn.SGD(net.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda x, y: scaler.scale(loss_of(net(x), y)), None, net.trainable_params())

    def step(x, y):
        loss, grads = gradient(x, y)
        grads = scaler.unscale(grads)
        scaler.adjust(amp.all_finite(grads))
        optimizer(grads)
        return scaler.unscale(loss)

    return step


STEPS = {
    "adamw": lambda net: cell(net, nn.AdamWeightDecay(net.trainable_params(), 1e-3)),
    "rates": lambda net: cell(net, nn.Adam(net.trainable_params(), nn.cosine_decay_lr(0.0, 0.1, 10, 2, 5))),
    "schedule": lambda net: cell(net, nn.Momentum(net.trainable_params(), nn.CosineDecayLR(0.0, 0.1, 10), 0.9, weight_decay=0.1)),
    "clipped": clipped, "scaled": scaled,
    "O2": lambda net: amp.build_train_network(net, nn.SGD(net.trainable_params(), 0.1), loss_of, level="O2",
                                              loss_scale_manager=ms.DynamicLossScaleManager()),
}
texts, pictures = (Block, lambda: (ints(50, 2, 8), ints(50, 16))), (images, lambda: (floats(2, 3, 8, 8), ints(50, 2)))
ON = {"adamw": texts, "rates": pictures, "schedule": texts, "clipped": pictures, "scaled": texts, "O2": pictures}
for name, (net, batch) in ON.items():
    ms.set_seed(1)
    step, losses, seen = STEPS[name](net().set_train()), [], []
    for _ in range(2):
        given = [Tensor(v) for v in batch()]
        with stand_in.counted() as found:
            out = step(*given)
        seen.append([found["to_device"], found["to_host"], found["waits"]])
        losses.append(float(out[0] if isinstance(out, tuple) else out))
    told[name] = {"seen": seen, "losses": losses, "ran": found["operators"]}
"""

AROUND = """
with stand_in.counted() as found:
    x = Tensor(floats(2, 3)); y = Tensor([1.0, 2.0, 3.0]); z = Tensor(2.5); w = Tensor(floats(3), ms.float16)
told["made"] = dict(found)
with stand_in.counted() as found:
    ((x + 1.5) * y).clip(0.0, 1.0).masked_fill(x > 0, 3.0) ** z
    ops.select(x > 0, x, 2.0)
told["numbers"] = dict(found)
with stand_in.counted() as found:
    told["value"] = bool(abs(x.sum().item() - x.asnumpy().sum()) < 1e-5)
told["read"] = dict(found)
ms.set_context(pynative_synchronize=True)
with stand_in.counted() as found:
    ops.relu(x + y)
    ops.exp(x)
told["each"] = dict(found)
stand_in.failing.add("exp")
try:
    ops.relu(x)
    ops.exp(x)
except RuntimeError as error:
    told["at"] = str(error).split(": ")[0] + "|" + type(error).__name__ + "|" + str("device-side assert triggered" in str(error))
stand_in.failing.clear()
ms.set_context(pynative_synchronize=False)
stand_in.failing.add("exp")
ops.exp(x)
ops.relu(x)
try:
    ms.hal.synchronize()
    told["later"] = "nothing"
except RuntimeError as error:
    told["later"] = type(error).__name__
stand_in.failing.clear()
with stand_in.counted() as found:
    host = x.move_to("CPU")
    told["host"] = host.device
    back = host.move_to("GPU", blocking=False)
    told["back"] = [back.device, bool((back == x).all())]
    also = x.to("CPU"), host.to("GPU", ms.float16)
    told["to"] = [also[0].device, also[1].device, str(also[1].dtype)]
told["moves"] = [found["to_device"], found["to_host"]]
told["mixed"] = (host + x).device
"""


def programs(text: str, mode: int, device: str) -> Any:
    code = HEAD.format(tests=str(TESTS), device=device, mode=mode) + text + "\nprint(json.dumps(told))\n"
    ended = processes.python("-c", code, cwd=TESTS, extra={"OMP_NUM_THREADS": "1"}, timeout=300)
    assert ended.code == 0, ended.err[-3000:]
    return json.loads(ended.out.splitlines()[-1])


@pytest.mark.parametrize("mode", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_a_training_step_transfers_nothing_and_waits_for_nothing(mode: int) -> None:
    far, near = programs(TRAINING, mode, "GPU"), programs(TRAINING, mode, "CPU")
    assert set(far) == set(near) and len(far) == 6
    for name, row in far.items():
        # The host decides once a step whether an overflow omits the update. PyNative copies the flag for it; a graph reads it in place.
        allowed = [0, mode, 1] if name == "O2" else [0, 0, 0]
        assert row["seen"] == [allowed] * 2, name
        assert row["losses"] == pytest.approx(near[name]["losses"], rel=1e-5), name
        assert row["ran"] > 20 and near[name]["ran"] == 0, name


def test_numbers_waiting_and_moving() -> None:
    texts = programs(AROUND, 1, "GPU")
    line = next(at for at, text in enumerate((HEAD + AROUND).splitlines(), 1) if text == "    ops.exp(x)" and at > 30)
    assert texts["made"] == {"to_device": 3, "operators": texts["made"]["operators"]}         # a number is filled in there
    assert set(texts["numbers"]) == {"operators"}
    assert texts["value"] and (texts["read"]["waits"], texts["read"]["to_host"]) == (2, 2)
    assert texts["each"]["waits"] == 3 and "to_host" not in texts["each"]                     # three operators, each waited for
    assert texts["at"] == f"<string>:{line}|DeviceFailed|True"
    assert texts["later"] == "RuntimeError"
    assert (texts["host"], texts["back"], texts["mixed"]) == ("CPU", ["spore:0", True], "spore:0")
    assert texts["to"] == ["CPU", "spore:0", "Float16"]
    assert texts["moves"][0] == 2


@pytest.mark.parametrize("files", [
    "ops_elementwise", pytest.param("ops_array,ops_methods,nn_layers,mint_functions,nn_optim", marks=pytest.mark.slow),
])
def test_operator_records_hold_on_it(files: str) -> None:
    words = "-m", "pytest", "-q", "-n", "0", "-p", "stand_in", "-p", "no:cacheprovider", "tests/parity/test_cases.py"
    ended = processes.python(*words, cwd=TESTS.parent, extra={"PARITY": files, "OMP_NUM_THREADS": "1"}, timeout=400)
    assert ended.code == 0, ended.out[-3000:]
    ran = ast.literal_eval(next(line for line in ended.out.splitlines() if line.startswith("stand-in: ")).partition(": ")[2])
    assert ran["operators"] > 500 and ran["to_device"] > 100
