"""Settings of parallel execution and of the runtime, on one process."""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, hal, nn, runtime
from mindspore.context import get_context
from mindspore.parallel import _cost_model_context as costs
from mindspore.parallel.auto_parallel import AutoParallel

from torchspore.context import effects
from torchspore.context.store import STORE

SWITCHES = (
    "no_init_parameters_in_compile", "disable_strategy_file_only_for_trainable_params", "enable_fp32_communication", "print_local_norm",
    "enable_device_local_norm", "enable_gradients_mean", "disable_gradient_fp32_sync", "disable_loss_repeated_mean",
)


def test_auto_parallel_runs_the_network(mode: int) -> None:
    net = nn.Dense(2, 2)
    wrapped = AutoParallel(net, "sharding_propagation")
    for name in SWITCHES:
        getattr(wrapped, name)()
    for name in ("load_param", "save_param"):
        getattr(wrapped, f"{name}_strategy_file")("s.ckpt")
    for name in ("load_operator", "save_operator"):
        getattr(wrapped, f"{name}_strategy_file")("/tmp/s.json")
    wrapped.set_group_ckpt_save_file("g.pb")
    wrapped.dump_local_norm("norms")
    wrapped.transformer_opt(None)
    wrapped.dataset_strategy(((1, 8), (1, 8)))
    wrapped.hsdp(2, 32, "level2")
    wrapped.comm_fusion({"allreduce": {"mode": "auto", "config": None}})
    assert wrapped.get_pipeline_stages() == 1
    wrapped.pipeline(2, interleave=True, scheduler="gpipe")
    assert wrapped.get_pipeline_stages() == 2 and [p.name for p in wrapped.get_parameters()] == ["weight", "bias"]
    x = Tensor(np.ones((3, 2), np.float32))
    np.testing.assert_array_equal(wrapped(x).asnumpy(), net(x).asnumpy())
    assert AutoParallel(lambda x: x + 1)(x).asnumpy().max() == 2
    model = ms.Model(wrapped, nn.MSELoss(), nn.SGD(wrapped.trainable_params(), 0.1))
    model.train(1, ms.dataset.NumpySlicesDataset((np.ones((4, 2), np.float32), np.ones((4, 2), np.float32))).batch(2))


@pytest.mark.parametrize(("call", "kind"), [
    (lambda net: AutoParallel(3), TypeError), (lambda net: AutoParallel(net, "x"), ValueError), (lambda net: net.hsdp(0), ValueError),
    (lambda net: net.hsdp(2, 64, "level9"), ValueError), (lambda net: net.hsdp("x"), TypeError), (lambda net: net.pipeline("x"), TypeError),
    (lambda net: net.pipeline(0), ValueError), (lambda net: net.pipeline(1, scheduler="x"), ValueError),
    (lambda net: net.dataset_strategy(3), TypeError), (lambda net: net.dataset_strategy("x"), ValueError),
    (lambda net: net.comm_fusion(3), TypeError), (lambda net: net.comm_fusion({"x": 1}), KeyError),
    (lambda net: net.save_param_strategy_file(3), TypeError), (lambda net: net.save_operator_strategy_file("rel.json"), KeyError),
    (lambda net: net.transformer_opt(3), TypeError), (lambda net: nn.AdaSumByGradWrapCell(3), TypeError),
    (lambda net: costs.set_cost_model_context(x=3), ValueError), (lambda net: costs.set_cost_model_context(run_phase="a"), TypeError),
    (lambda net: costs.get_cost_model_context("x"), ValueError), (lambda net: costs._set_multi_subgraphs(3), TypeError),
    (lambda net: runtime.set_memory("x"), ValueError), (lambda net: runtime.set_memory(3), TypeError),
    (lambda net: runtime.set_memory(optimize_level="O2"), ValueError), (lambda net: runtime.dispatch_threads_num("x"), TypeError),
    (lambda net: runtime.set_cpu_affinity(3), TypeError),
    (lambda net: runtime.set_cpu_affinity(True, ["9999"]), ValueError), (lambda net: runtime.set_cpu_affinity(True, ["x"]), ValueError),
    (lambda net: runtime.set_cpu_affinity(True, bind_file="x"), ValueError), (lambda net: runtime.set_kernel_launch_group(3), ValueError),
    (lambda net: runtime.set_kernel_launch_group("x"), TypeError), (lambda net: runtime.set_kernel_launch_capture(3), TypeError),
    (lambda net: hal.Stream("x"), TypeError), (lambda net: hal.Event(3), TypeError), (lambda net: hal.StreamCtx(3), TypeError),
    (lambda net: hal.Event().elapsed_time(hal.Event()), RuntimeError),
])
def test_what_does_not_fit(call: Callable[[Any], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call(AutoParallel(nn.Dense(2, 2)))


@pytest.mark.parametrize("kind", ["AdaSumByGradWrapCell", "AdaSumByDeltaWeightWrapCell"])
def test_adaptive_sums_of_one_are_the_optimizers_own(mode: int, kind: str) -> None:
    nets = [nn.Dense(2, 2, weight_init="ones") for _ in range(2)]
    inner = [nn.Momentum(net.trainable_params(), 0.1, 0.9) for net in nets]
    for net, optimizer in zip(nets, (inner[0], getattr(nn, kind)(inner[1]))):
        optimizer(tuple(Tensor(np.ones(p.shape, np.float32)) for p in net.trainable_params()))
    np.testing.assert_array_equal(nets[0].weight.asnumpy(), nets[1].weight.asnumpy())
    assert nets[1].weight.asnumpy().max() < 1


def test_figures_of_the_search_are_stored() -> None:
    try:
        costs.set_cost_model_context(costmodel_alpha=2.0, run_phase=1)
        costs._set_multi_subgraphs()
        costs._set_algo_single_loop()
        costs._set_rp_matmul_mem_coef(0.5)
        assert (costs.get_cost_model_context("costmodel_alpha"), costs._get_rp_matmul_mem_coef()) == (2.0, 0.5)
        assert costs._get_multi_subgraphs() and costs._get_algo_single_loop()
    finally:
        costs.reset_cost_model_context()
        costs._set_multi_subgraphs(False)
        costs._set_algo_single_loop(False)
        costs._set_rp_matmul_mem_coef(0.1)
    assert costs.get_cost_model_context("costmodel_alpha") == 1.0


def test_set_memory_is_two_options() -> None:
    with effects.fresh(is_loaded=False):                     # what the limit does is tested in tests/unit/memory
        ms.set_memory("10GB", "2GB", "60GB", "O1")
        assert get_context("max_device_memory") == 60 and get_context("memory_optimize_level") == 1
        STORE.reset("context")


def test_threads() -> None:
    threads, cores = get_context("runtime_num_threads"), os.sched_getaffinity(0)
    try:
        runtime.dispatch_threads_num(3)
        assert get_context("runtime_num_threads") == 3
        runtime.set_cpu_affinity(True, [str(min(cores))])
        assert os.sched_getaffinity(0) == {min(cores)}
        runtime.set_cpu_affinity(False)
        runtime.set_cpu_affinity(True, {})                                    # mindformers 1.7 passes a dictionary
        runtime.set_cpu_affinity(True, {"device7": [str(max(cores))]})        # that of another device
        assert os.sched_getaffinity(0) == cores
        runtime.set_cpu_affinity(True, {f"device{get_context('device_id')}": [str(min(cores))]})
        assert os.sched_getaffinity(0) == {min(cores)}
        runtime.set_cpu_affinity(False)
        assert os.sched_getaffinity(0) == cores
        ms.launch_blocking()
        assert get_context("pynative_synchronize")
    finally:
        ms.set_context(runtime_num_threads=threads)
        ms.set_context(pynative_synchronize=False)
        runtime.set_cpu_affinity(False)
    runtime.set_kernel_launch_group()
    runtime.set_kernel_launch_capture(True, ["matmul"])
    runtime.empty_cache()


def test_streams_of_the_cpu() -> None:
    stream, event = hal.Stream(), hal.Event(enable_timing=True)
    assert str(stream) == "Stream(device_name=CPU, device_id:0, stream id:0)"
    assert stream == hal.default_stream() == hal.communication_stream()
    event.record()
    with hal.StreamCtx(stream):
        assert hal.current_stream() == stream and len({stream, hal.current_stream()}) == 1
    later = hal.Event(True)
    assert stream.record_event(later) is later and event.elapsed_time(later) >= 0 and event.query() and stream.query()
    stream.wait_event(event), stream.wait_stream(stream), stream.synchronize(), event.wait(), event.synchronize(), ms.synchronize()
    runtime.set_cur_stream(None)


def test_pythons_own_processes() -> None:
    from mindspore import multiprocessing

    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(_doubled, [1.0, 2.0]) == [2.0, 4.0]


def _doubled(x: float) -> float:
    return float((Tensor(x) * 2).asnumpy())


def test_layouts_are_described() -> None:
    grid = ms.Layout((2, 4), ("row", "column"))
    assert grid("row", "None").to_dict() == {
        "device_matrix": (2, 4), "tensor_map": (1, -1), "interleaved_parallel": False, "alias_name": ("row", "column"),
        "rank_list": list(range(8)),
    }
    assert grid(("row", "column"), "None").to_dict()["tensor_map"] == ((1, 0), -1)
    net = nn.Dense(2, 2)
    assert ms.shard(net, ((1, 1),)) is net and ms.ops.shard(len, ((1,),))([3]) == 1
    ms.sync_pipeline_shared_parameters(net)


@pytest.mark.parametrize(("call", "kind"), [
    (lambda: ms.Layout(2, ("a",)), TypeError), (lambda: ms.Layout((2, 2), ("a",)), ValueError), (lambda: ms.Layout((2,), ("a",), 3),
        TypeError),
    (lambda: ms.Layout((2, 2), ("a", "b"), [0, 1]), ValueError), (lambda: ms.Layout((2, 2), ("a", "None")), ValueError),
    (lambda: ms.Layout((2,), ("a",))("b"), ValueError), (lambda: ms.Layout((2, 2), ("a", "b"))("a", "a"), ValueError),
    (lambda: ms.Layout((2,), ("a",)).to_dict(), ValueError), (lambda: ms.shard(3, ((1,),)), TypeError), (lambda: ms.shard(len, 3),
        TypeError),
    (lambda: ms.sync_pipeline_shared_parameters(3), TypeError), (lambda: ms.lazy_inline(attrs=3), TypeError),
    (lambda: ms.lazy_inline(policy="x"), ValueError), (lambda: ms.ops.Push("Adam")((1,), ()), RuntimeError),
    (lambda: ms.ops.Pull()(1, 2), RuntimeError),
    (lambda: ms.ops.all_gather_into_tensor_uneven(ms.Tensor([1.0]), ms.Tensor([1.0]), 3), TypeError),
])
def test_what_does_not_fit_elsewhere(call: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call()


def test_arguments_become_attributes() -> None:
    class Block(nn.Cell):
        @ms.lazy_inline(attrs=["a", "b"])
        def __init__(self, a: int, b: int = 2) -> None:
            super().__init__()

    class Plain(nn.Cell):
        @ms.lazy_inline
        def __init__(self, a: int) -> None:
            super().__init__()
            self.c = a

    assert (Block(1).a, Block(1).b, Plain(3).c) == (1, 2, 3)
    assert issubclass(nn.GraphKernel, nn.Cell)


def test_names_of_quantized_dtypes() -> None:
    from mindspore.common.dtype import QuantDtype

    assert str(ms.QuantDtype.INT8) == "INT8" and ms.QuantDtype.UINT16.value() == 115 and QuantDtype is ms.QuantDtype
    array = np.ones(2, np.float32)
    ms.from_numpy(array)[0] = 3.0
    assert array[0] == 3.0


def test_an_older_check() -> None:
    from mindspore._checkparam import check_int_positive

    assert check_int_positive("size", 3) == 3
    with pytest.raises(ValueError, match="size"):
        check_int_positive("size", 0)


def test_marks_in_a_trace() -> None:
    from mindspore.profiler import mstx

    number = mstx.range_start("epoch", hal.current_stream())
    mstx.mark("here", domain="mine")
    mstx.range_end(number)
    mstx.range_end(number)                                                   # once more does nothing
    for call in (lambda: mstx.mark(3), lambda: mstx.range_start("a", 3), lambda: mstx.range_end("x")):
        with pytest.raises(TypeError):
            call()


def test_other_homes() -> None:
    from mindspore.common import is_tensor
    from mindspore.ops.auto_generate.gen_ops_prim import embedding_op, index_add_ext_op
    from mindspore.ops.function.nn_func import avg_pool2d_ext

    assert is_tensor(Tensor(1.0)) and ms.ops.Tensor is Tensor
    assert embedding_op(Tensor([1], ms.int32), Tensor([[1.0], [2.0]])).asnumpy().tolist() == [[2.0]]
    assert index_add_ext_op(Tensor([1.0, 2.0]), 0, Tensor([1], ms.int32), Tensor([5.0])).asnumpy().tolist() == [1.0, 7.0]
    assert avg_pool2d_ext(Tensor(np.ones((1, 1, 2, 2), np.float32)), 2).asnumpy().tolist() == [[[[1.0]]]]
    assert list(nn.get_metrics({"loss"})) == ["loss"]


def test_which_gradients_are_centralized() -> None:
    conv, dense = nn.Conv2d(1, 2, 3), nn.Dense(2, 2)
    dense.update_parameters_name("dense.")
    groups = [{"params": [conv.weight], "grad_centralization": True}, {"params": dense.trainable_params()}]
    assert nn.SGD(groups, 0.1).grad_centralization_flags == (True, False, False)


def test_what_summaries_keep(tmp_path: Any) -> None:
    from mindspore.train.summary.summary_record import _get_summary_tensor_data

    scalar = ms.ops.ScalarSummary()
    with ms.SummaryRecord(str(tmp_path)):
        scalar("loss", Tensor(2.0))
        summaries = _get_summary_tensor_data()
        assert {name: float(value) for name, value in summaries.items()} == {"loss[:Scalar]": 2.0} and not _get_summary_tensor_data()


def test_a_function_that_is_not_inlined_computes_the_same() -> None:
    @ms.no_inline
    def doubled(x: Any) -> Any:
        return x * 2

    assert ms.jit(lambda x: doubled(x) + 1)(ms.Tensor(3.0)) == doubled(ms.Tensor(3.0)) + 1 == 7.0
