"""`read_by` names who looks an option up: seen in a process that runs small programs of each kind."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import processes

from torchspore.context.options import OPTIONS

PROGRAM = """
import json, sys
from torchspore.context.store import Store

LOOKED_UP = set()

def from_where():
    frame = sys._getframe(2)
    while frame.f_globals["__name__"] == "torchspore.context.store":
        frame = frame.f_back
    return frame.f_globals["__name__"]

def seen(method):
    def look_up(self, name):
        LOOKED_UP.add((name, from_where()))
        return method(self, name)
    return look_up

Store.get, Store.source = seen(Store.get), seen(Store.source)
mode = Store.graph_mode.fget
Store.graph_mode = property(lambda self: (LOOKED_UP.add(("mode", from_where())), mode(self))[1])

import numpy as np
import mindspore as ms
from mindspore import Tensor, nn, ops

class Own(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        return (dout * 2,)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense, self.own, self.table = nn.Dense(3, 4), Own(), ms.Parameter(ops.ones((5, 3)), name="table")

    def construct(self, x):
        return self.own(self.dense(ops.gather(self.table, ops.ones((2,), ms.int32), 0) + x)).sum()

def train():
    net = Net()
    step = ms.value_and_grad(net, None, net.trainable_params())
    step(ops.ones((2, 3)))
    nn.SGD(net.trainable_params(), 0.1)(step(ops.ones((2, 3)))[1])
    ms.jit(lambda x: x + 1)(ops.ones((2,)))
    ms.grad(lambda x, scale: x * scale)(ops.ones(()), 2.0)

def save():
    data = ms.dataset.NumpySlicesDataset((np.ones((2, 3), np.float32), np.ones((2, 1), np.float32)), shuffle=False).batch(2)
    net = nn.Dense(3, 1)
    ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params())).train(1, data, callbacks=[ms.ModelCheckpoint()])

def share_out():
    ms.set_auto_parallel_context(parallel_mode="data_parallel", enable_parallel_optimizer=True, gradient_fp32_sync=True)
    net = Net()
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))
    step(ops.ones((2, 3)))
    ms.set_auto_parallel_context(device_num=1, global_rank=0)
    step.grad_reducer((ops.ones((5, 3)),))
    from torchspore.distributed.data_parallel import fusion
    fusion.rule("allgather"), fusion.rule("reducescatter")
    import torch
    from torchspore.graph.passes import communication
    communication.overlap_exchanges(torch.fx.GraphModule({}, torch.fx.Graph()))
    ms.reset_auto_parallel_context()

def split():
    from mindspore.common.api import _cell_graph_executor
    class Product(nn.Cell):
        def __init__(self):
            super().__init__()
            self.product, self.w = ops.MatMul().shard(((1, 2), (2, 1))), ms.Parameter(ops.ones((4, 2)), "w")
        def construct(self, x):
            return self.product(x, self.w)
    ms.set_context(mode=0)
    from torchspore.mindspore.common import deferred_init
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", init_param_in_compile=True)
    assert not deferred_init.is_delay_requested()
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=2, dataset_strategy="full_batch",
                                 strategy_ckpt_save_file="s.json", group_ckpt_save_file="groups.pb")
    _cell_graph_executor.compile(Product(), ops.ones((2, 4)))
    ms.set_auto_parallel_context(strategy_ckpt_load_file="s.json")
    _cell_graph_executor.compile(Product(), ops.ones((2, 4)))
    ms.set_auto_parallel_context(parallel_mode="auto_parallel")
    _cell_graph_executor.compile(nn.Dense(4, 2), ops.ones((2, 4)))
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", pipeline_stages=2)
    net = nn.SequentialCell([nn.ReLU(), nn.Tanh()])
    for stage, cell in enumerate(net):
        cell.pipeline_stage = stage
    _cell_graph_executor.compile(net, ops.ones((2, 4)))
    ms.reset_auto_parallel_context()

def serve():
    from torchspore.distributed.parameter_server import configuration, roles, status_page
    open("server.json", "w").write('{"server_cert_path": "no.p12", "client_cert_path": "no.p12", "ca_cert_path": "no.pem"}')
    ms.set_ps_context(enable_ps=True, worker_num=1, server_num=1, ms_role="MS_WORKER", config_file_path="server.json", enable_ssl=True,
                      client_password="a", server_password="b", scheduler_manage_port=0)
    settings, cluster = configuration.read(), roles.read()
    for role in ("worker", "server"):
        try:
            configuration.credentials(settings, role)
        except ValueError as error:
            assert "no.p12" in str(error), error
    with status_page.serving("127.0.0.1", dict):
        pass
    ms.reset_ps_context()

serve()
save()
share_out()
split()
open("config.json", "w").write('{"rdr": {"enable": false}}')
for given in ({"mode": 1}, {"mode": 0}, {"save_graphs": 1, "save_graphs_path": "saved"}, {"save_graphs": 0, "aoe_tune_mode": "offline"},
              {"aoe_tune_mode": "online", "graph_kernel_flags": "--opt_level=2 --dump_as_text=true --path=x.json"},
              {"enable_compile_cache": True, "compile_cache_path": "cache"}, {"jit_syntax_level": ms.STRICT},
              {"env_config_path": "config.json"}, {"profiling_options": "training_trace"}):
    ms.set_context(**given)
    try:
        train()
    except Exception as error:
        print(given, error, file=sys.stderr)
try:
    ops.bitwise_and(Tensor(np.ones(2, np.float16)), 1)
except Exception:
    pass
from torchspore.engine.execution import unsupported_dtypes as lacking
lacking.may_cast()
print(json.dumps(sorted(LOOKED_UP)))
"""


PARSED = {"graph_kernel_flags.path"}
"""Options that act when they are parsed: the file is read then, what is in it counts as written."""


@pytest.mark.needs("cryptography")
def test_each_option_is_looked_up_where_its_declaration_says(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = processes.torchspore("run", "program.py", cwd=tmp_path, timeout=300)
    looked_up = {(key, module) for key, module in json.loads(ended.out.splitlines()[-1])}
    wrong = []
    for key, option in OPTIONS.items():
        if option.read_by is None or key in PARSED or option.read_by.startswith("engine.devices.npu"):     # tests/unit/npu runs those
            continue
        # Of a dictionary its members are what is looked up.
        keys = {key, *(member.key for member in option.members.values())}
        home = f"torchspore.{option.read_by}"
        modules = {module for name, module in looked_up if name in keys}
        if not any(module == home or module.startswith(home + ".") for module in modules):
            wrong.append(f"{key}: read_by {home}, looked up by {', '.join(sorted(modules)) or 'nobody'}")
    assert not wrong, "\n".join(wrong) + "\n" + ended.err
