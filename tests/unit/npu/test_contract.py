"""What the context asks of torch_npu, beside a record of torch_npu's own names and signatures. Nothing here ran on Ascend hardware."""
from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Run

HERE = Path(__file__).parent
SOURCES = HERE.parents[2] / "src" / "torchspore"
RECORDS = json.loads((HERE / "torch_npu.json").read_text(encoding="utf-8"))
FAKE = {"PYTHONPATH": str(HERE / "fake")}

CONFIGURED = """
import os
import mindspore as ms
ms.set_context(device_target="Davinci")
assert ms.get_context("device_target") == "Ascend"
import torch_npu
from torchspore.context import effects
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE

def calls():
    found = [(name, arguments) for name, arguments in torch_npu.calls if name not in ("device_count",)]
    torch_npu.calls.clear()
    return found

calls()
ms.set_context(ascend_config={"precision_mode": "allow_fp32_to_fp16", "jit_compile": True, "matmul_allow_hf32": True,
                              "conv_allow_hf32": False, "op_debug_option": "oom"})
print(calls())
ms.set_context(ascend_config={"precision_mode": "force_fp16", "jit_compile": False, "hccl_watchdog": False})
print(calls(), os.environ["TORCH_HCCL_ASYNC_ERROR_HANDLING"])
ms.set_context(deterministic="ON", op_timeout=7)
print(calls())
ms.set_context(deterministic="OFF")
print(calls())
try:
    ms.set_context(ascend_config={"matmul_allow_hf32": False, "precision_mode": "none"})
except ValueError:
    print("refused", calls())
for key in ("matmul_allow_hf32", "jit_compile", "hccl_watchdog", "ge_options"):
    print(key, "=", effects.outcome_of(OPTIONS[key], STORE.get(key)))
"""

GRAPH = """
import torch, mindspore as ms, torchair
from torchspore.context import effects
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE
from torchspore.engine.devices.npu import graph_engine

ms.set_context(device_target="Ascend")
open("precision.ini", "w").write("[ByType]\\nSoftmaxV2=high_precision\\n")
ms.set_context(mode=0, ascend_config={
    "precision_mode": "must_keep_origin_dtype", "op_precision_mode": "precision.ini", "atomic_clean_policy": 1,
    "host_scheduling_max_threshold": 5, "topo_order": {"0": "rdfs", "1": "rdfs"},
    "ge_options": {"global": {"ge.exec.precision_mode": "allow_mix_precision"}, "session": {"ge.exec.atomicCleanPolicy": "0"}}})
module = torch.fx.symbolic_trace(lambda x: (x + 1,))
run = graph_engine.compiled(module, [torch.ones(2)])
print(run(torch.ones(2)))
session, process = torchair.calls[-1]
print(sorted(session.items()))
print(sorted((name, str(value).rpartition("/")[2]) for name, value in process.items()))
for key in ("op_precision_mode", "atomic_clean_policy", "host_scheduling_max_threshold", "topo_order", "ge_options"):
    assert str(effects.outcome_of(OPTIONS[key], STORE.get(key))) == "applied: handed to the graph engine", key
ms.set_context(ascend_config={"topo_order": {"0": "rdfs", "1": "bfs"}})
graph_engine.options()
print(effects.outcome_of(OPTIONS["topo_order"], STORE.get("topo_order")))
for place, fit in (("npu", True), ("cpu", False)):
    module = torch.fx.symbolic_trace(lambda x: (torch.ops.aten.add.Tensor(x, 1),))
    next(iter(module.graph.nodes)).meta["val"] = torch.empty(2, device="meta") if place == "cpu" else type(
        "Fake", (torch.Tensor,), {"device": torch.device("npu", 0)})()
    assert graph_engine.is_fit(module) is fit, place
"""


@pytest.mark.parametrize("version", [min(RECORDS), max(RECORDS)])
def test_ascend_config_becomes_calls_of_torch_npu(run: Callable[..., Run], tmp_path: Path, version: str) -> None:
    (tmp_path / "configured.py").write_text(CONFIGURED)
    ran = run("run", "configured.py", extra={**FAKE, "RECORDED_TORCH_NPU": version})
    assert ran.out.splitlines() == [
        "[('set_option', {'option': {'ACL_PRECISION_MODE': 'allow_fp32_to_fp16'}}), ('set_compile_mode', {'jit_compile': True}), "
        "('matmul.allow_hf32', {'value': True}), ('conv.allow_hf32', {'value': False}), "
        "('set_option', {'option': {'ACL_OP_DEBUG_OPTION': 'oom'}})]",
        "[('set_compile_mode', {'jit_compile': False})] 0",
        "[('set_deterministic_level', {'level': 1}), ('set_op_timeout_ms', {'timeout': 7000})]",
        "[('set_deterministic_level', {'level': 0})]",
        "refused []",
        "matmul_allow_hf32 = applied: products of float32 may use HF32",
        "jit_compile = applied: existing kernels run, nothing is compiled",
        "hccl_watchdog = applied: collectives are not watched",
        "ge_options = no effect here: PYNATIVE_MODE compiles no graph",
    ], ran.err


def test_the_graph_engine_gets_the_options(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "graph.py").write_text(GRAPH)
    ran = run("run", "graph.py", extra=FAKE)
    assert ran.out.splitlines() == [
        "[tensor([2., 2.])]",
        "[('ge.exec.atomicCleanPolicy', '0'), ('ge.exec.static_model_ops_lower_limit', '5'), ('ge.jit_compile', '2'), "
        "('ge.topoSortingMode', '2')]",
        "[('ge.exec.enableEngineParallel', '0'), ('ge.exec.op_precision_mode', 'precision.ini'), "
        "('ge.exec.precision_mode', 'allow_mix_precision')]",
        "no effect here: graphs have no numbers here; one order for all of them acts",
    ], ran.err


def test_there_is_a_record_for_each_supported_version_of_torch() -> None:
    assert [version.rpartition(".post")[0] or version for version in RECORDS] == ["2.11.0", "2.12.0", "2.13.0", "2.14.0"]


@pytest.mark.parametrize("version", RECORDS)
def test_every_name_that_is_called_is_in_the_record(version: str) -> None:
    called = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
                function = ast.unparse(node.value.func)
                if function in ("npu", "device.npu"):
                    called.add(node.attr)
    assert {"set_option", "set_compile_mode", "matmul", "conv", "device_count", "set_op_timeout_ms"} <= called
    assert called <= set(RECORDS[version]["npu"])
    assert {"get_npu_backend", "CompilerConfig"} <= set(RECORDS[version]["torchair"])
