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


PACKAGES = ("torchspore.graph.", "torchspore.distributed.", "torchspore.mindspore.dataset.", "torchspore.mindspore.train.",
            "torchspore.mindspore.mint.", "torchspore.mindspore.numpy.", "torchspore.export.", "torchspore.port.", "torchspore.cli.")
LIGHT = {
    "torchspore.distributed.comm", "torchspore.distributed.comm.environment", "torchspore.distributed.comm.groups",
    "torchspore.distributed.comm.rank_lists", "torchspore.distributed.data_parallel", "torchspore.distributed.data_parallel.fusion",
    "torchspore.distributed.data_parallel.gradient_reduction", "torchspore.distributed.data_parallel.option_effects",
    "torchspore.distributed.data_parallel.optimizer_shards", "torchspore.distributed.data_parallel.overlap",
    "torchspore.distributed.data_parallel.parameter_broadcast", "torchspore.distributed.data_parallel.settings",
    "torchspore.distributed.data_parallel.sharded_weights", "torchspore.distributed.device_count",
    "torchspore.distributed.parameter_server", "torchspore.distributed.parameter_server.roles", "torchspore.graph.capture",
    "torchspore.graph.capture.optimizer_nodes", "torchspore.graph.capture.running_trace", "torchspore.graph.forward_cache",
    "torchspore.graph.gradient_recording", "torchspore.graph.refusal", "torchspore.graph.report", "torchspore.graph.report.provenance",
    "torchspore.graph.report.stages", "torchspore.graph.splitter",
}
"""The modules of these packages that programs in PyNative mode and in one process use."""

HEADER = """
import sys
import torchspore; torchspore.install()
import mindspore as ms
from mindspore import Tensor, context, nn, ops
"""
PYNATIVE = """
import numpy as np
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
x, y = Tensor(np.ones((2, 4), np.float32)), Tensor(np.ones((2, 2), np.float32))
net = nn.SequentialCell(nn.Dense(4, 4), nn.Dropout(p=0.5), nn.ReLU(), nn.Dense(4, 2))
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
step(x, y)
net.set_train()
optimizer = nn.Adam(net.trainable_params(), 0.01)
loss, gradients = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, net.trainable_params())(x, y)
optimizer(gradients)
ms.grad(ops.sin)(x)
ops.Print()(loss)
ops.AllReduce
"""
LOADED = f"print(*sorted(name for name in sys.modules if name.startswith({PACKAGES})))"


def test_a_header_loads_nothing_that_its_program_may_not_use() -> None:
    assert set(in_process(HEADER + LOADED).split()) - LIGHT == set()


def test_a_training_in_pynative_mode_loads_neither_captures_nor_exchanges() -> None:
    assert set(in_process(HEADER + PYNATIVE + LOADED).splitlines()[-1].split()) - LIGHT == set()


FIRST_GRAPH = """
print("torchspore.graph.dispatch" in sys.modules)
ms.set_context(mode=ms.GRAPH_MODE)
print(nn.ReLU()(Tensor([1.0])).shape, "torchspore.graph.dispatch" in sys.modules)
"""


def test_the_first_graph_loads_the_package() -> None:
    assert in_process(HEADER + FIRST_GRAPH) == "False\n(1,) True\n"


FIRST_CALLS = HEADER + """
import threading
ms.set_context(mode=ms.GRAPH_MODE)
nets, results, start = [nn.SequentialCell(nn.ReLU(), nn.Tanh()) for _ in range(4)], [], threading.Barrier(4)

def call(net):
    start.wait()
    results.append(float(net(Tensor([0.0]))[0]))

threads = [threading.Thread(target=call, args=(net,)) for net in nets]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(results)
"""


def test_the_first_graphs_of_several_threads() -> None:
    assert in_process(FIRST_CALLS) == "[0.0, 0.0, 0.0, 0.0]\n"


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
