"""What importing torchspore costs and leaves alone."""
from __future__ import annotations

import subprocess
import sys

from support import processes


def in_process(code: str, *options: str) -> str:
    ended = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, env=processes.environment(), timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


def test_import_loads_no_torch_and_installs_nothing() -> None:
    code = "import sys; before = list(sys.meta_path); import torchspore; print('torch' in sys.modules, sys.meta_path == before)"
    assert in_process(code) == "False True\n"


def test_install_loads_no_torch() -> None:
    code = "import sys, torchspore; torchspore.install(); print('torch' in sys.modules, 'numpy' in sys.modules)"
    assert in_process(code) == "False False\n"


def test_import_loads_one_module_of_ours() -> None:
    """What it costs is measured in benchmarks/imports.py; here is why it costs nothing."""
    code = "import sys; before = set(sys.modules); import torchspore; print(*sorted(set(sys.modules) - before))"
    assert in_process(code).split() == ["__future__", "torchspore"]


STEP = """
import gc, sys
import torchspore; torchspore.install()
import mindspore as ms, numpy as np
from mindspore import Tensor, nn
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
net = nn.SequentialCell(nn.Dense(4, 4), nn.ReLU(), nn.Dense(4, 2))
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
step(Tensor(np.ones((2, 4), np.float32)), Tensor(np.ones((2, 2), np.float32)))
heavy = ("sympy", "torch._dynamo", "torch._inductor", "torch.onnx", "torch.distributed.tensor", "torch.fx.experimental.symbolic_shapes")
print(gc.isenabled(), *[name for name in heavy if name in sys.modules])
"""


def test_a_training_step_in_pynative_mode_loads_no_compiler() -> None:
    assert in_process(STEP) == "True\n"


def test_the_import_does_not_enable_a_garbage_collection_that_the_program_disabled() -> None:
    code = "import gc; gc.disable(); import torchspore; torchspore.install(); import mindspore; print(gc.isenabled())"
    assert in_process(code) == "False\n"


OBJECTS = """
import gc, weakref
class Node: pass
def cycle():
    node = Node(); node.self = node
    return weakref.ref(node)
gc.collect(); gc.disable()
frozen = gc.get_freeze_count()          # Python 3.12 freezes some objects when it starts
before = cycle(){freeze}
gc.enable()
import torchspore; torchspore.install()
import mindspore
print(gc.get_freeze_count() > frozen, gc.isenabled())
gc.collect(); print(before() is None)
"""


def test_the_import_leaves_garbage_of_the_program_to_the_next_collection() -> None:
    assert in_process(OBJECTS.format(freeze="")) == "False True\nTrue\n"


def test_objects_that_the_program_froze_stay_frozen() -> None:
    assert in_process(OBJECTS.format(freeze="; gc.freeze()")) == "True True\nFalse\n"
