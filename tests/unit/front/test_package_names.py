"""What packages call below the public API: PyNative by hand, inner functions, the transformer library of 1.x, comm_func, profiler."""
from __future__ import annotations

import builtins
import csv
import importlib
import json
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore._c_expression import MSContext, ParamInfo, TensorPy, pyboost_empty, typing
from mindspore.common._stub_tensor import StubTensor
from mindspore.common.api import _function_forbid_reuse, _no_grad, _pynative_executor
from mindspore.communication import comm_func
from mindspore.log import _LogActionOnce
from mindspore.nn.layer.rnn_cells import RNNCellBase, _gru_cell, _lstm_cell, _rnn_relu_cell, _rnn_tanh_cell
from mindspore.ops._primitive_cache import _get_cache_prim
from mindspore.ops.composite import GradOperation
from mindspore.ops.function import nn_func, random_func
from mindspore.ops.operations._grad_ops import StridedSliceGrad
from mindspore.ops.operations._rl_inner_ops import CudnnGRU
from mindspore.ops.operations.nn_ops import FlashAttentionScore
from mindspore.ops.primitive import _primexpr
from mindspore.parallel._transformer import MoE, MoEConfig, MoEParallelConfig, MultiHeadAttention, OpParallelConfig
from mindspore.parallel._transformer import layers as transformer_layers
from mindspore.parallel._transformer.transformer import FeedForward, TransformerOpParallelConfig, _get_lambda_func
from mindspore.profiler import (
    ExportType,
    HostSystem,
    Profiler,
    ProfilerActivity,
    ProfilerLevel,
    profile,
    schedule,
    tensorboard_trace_handler,
)
from mindspore.train import amp
from mindspore.train.serialization import _exec_save, _parse_ckpt_proto, _update_param


def _tensor(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.RandomState(seed).randn(*shape).astype(np.float32))


# ---- gradients by hand --------------------------------------------------------------------------------------------------------------


class _PackageParameter(Tensor):
    """As packages make them: a Tensor with the attributes that a Parameter has."""

    def __init__(self, values: Tensor) -> None:
        super().__init__(values)
        self.requires_grad = True

    def __parameter__(self) -> None:  # type: ignore[override]
        """Marks the class."""


@pytest.mark.parametrize("kind", [Parameter, _PackageParameter])
def test_a_recorded_call_gives_gradients_by_weights_known_later(kind: type) -> None:
    weight, calls = kind(_tensor(3)), []

    def forward(x: Tensor) -> Tensor:
        calls.append(1)
        return (weight * weight * x).sum()

    x = _tensor(3, seed=1)
    _pynative_executor.set_grad_flag(True)
    _pynative_executor.new_graph(forward, x)
    value = forward(x)
    _pynative_executor.end_graph(forward, value, x)
    (gradient,) = _pynative_executor.grad(forward, GradOperation(False, True, False), (weight,), None, x)
    np.testing.assert_allclose(gradient.asnumpy(), 2 * weight.asnumpy() * x.asnumpy(), rtol=1e-6)
    assert len(calls) == 1 and not value._t.requires_grad


def test_a_record_that_an_exception_interrupted_is_closed_by_the_next() -> None:
    def fails() -> None:
        _pynative_executor.new_graph(fails)
        raise KeyError("left")

    for _ in range(3):
        with pytest.raises(KeyError):
            fails()
    weight = Parameter(Tensor([2.0]))
    _pynative_executor.new_graph(ops.square, weight)
    value = ops.square(weight)
    _pynative_executor.end_graph(ops.square, value, weight)
    gradients = _pynative_executor.grad(ops.square, GradOperation(get_all=True), None, None, False, weight)
    assert gradients[0].asnumpy().tolist() == [4.0]
    with pytest.raises(RuntimeError, match=r"expected new_graph\(\) before it"):
        _pynative_executor.end_graph(ops.square, value, weight)


def test_no_grad_leaves_out_what_is_inside() -> None:
    @_no_grad()
    def quiet(x: Tensor) -> Tensor:
        return x * x

    def loud(x: Tensor) -> Tensor:
        with ms._no_grad():
            inner = x * 5
        return (inner * x + quiet(x)).sum()

    assert ms.grad(loud)(Tensor([3.0])).asnumpy().tolist() == [15.0]
    assert _pynative_executor.enable_grad()


# ---- values ------------------------------------------------------------------------------------------------------------------------


def test_max_by_position_is_a_pair_that_acts_as_its_values() -> None:
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    values, indexes = x.max(1)
    assert (values.asnumpy().tolist(), indexes.asnumpy().tolist()) == ([2, 5], [2, 2])
    result = x.max(1)
    assert (result < 3.0).asnumpy().tolist() == [True, False] and result.expand_dims(-1).shape == (2, 1)
    assert (2 * result - Tensor([1.0, 1.0])).asnumpy().tolist() == [3.0, 9.0]
    assert (x * x.min(0)).asnumpy().tolist() == [[0, 1, 4], [0, 4, 10]]
    assert type(x.max(dim=1)) is tuple and x.max(0, keepdims=True).shape == (1, 3)
    assert ms.grad(lambda x: (x.max(1) * 2.0).sum())(x).asnumpy().tolist() == [[0, 0, 2], [0, 0, 2]]


def test_a_tensor_is_not_equal_to_a_list_of_another_shape() -> None:
    x = Tensor([1.0, 2.0])
    assert (x == []) is False and (x != []) is True and (x == [1.0, 2.0, 3.0]) is False


def test_gather_of_one_element_of_a_vector() -> None:
    assert ops.gather(Tensor([1.0, 2.0, 3.0]), Tensor(2, ms.int32), 0).shape == ()


def test_names_of_arguments_of_1_x() -> None:
    x = _tensor(2, 3)
    assert ops.transpose(x, input_perm=(1, 0)).shape == (3, 2) and ops.tile(x, multiples=(1, 2)).shape == (2, 6)
    assert ops.pad(x, paddings=((0, 1), (1, 1))).shape == (3, 5)


def test_an_initializer_fills_an_array_by_a_call() -> None:
    array = np.zeros((50, 50), np.float32)
    ms.common.initializer.Normal(0.5)(array)
    assert 0.4 < array.std() < 0.6


def test_a_table_of_rates_answers_in_the_shape_of_the_step() -> None:
    optimizer = nn.Momentum(nn.Dense(2, 2).trainable_params(), [0.1, 0.2], 0.9)
    assert optimizer.learning_rate(optimizer.global_step).shape == (1,) and optimizer.learning_rate(Tensor(1)).shape == ()


def test_an_optimizer_of_the_program_keeps_its_weight_decay() -> None:
    class CustomOptimizer(nn.Optimizer):
        def __init__(self, parameters: list[Parameter]) -> None:
            super().__init__(0.1, [{"params": parameters, "weight_decay": 0.1}], weight_decay=0.1)
            self.weight_decay = Tensor(0.5)

    assert float(CustomOptimizer(nn.Dense(2, 2).trainable_params()).weight_decay) == 0.5


# ---- inner functions ---------------------------------------------------------------------------------------------------------------


def test_cells_of_recurrent_nets_as_functions() -> None:
    class CustomCell(RNNCellBase):
        def __init__(self) -> None:
            super().__init__(3, 4, True, num_chunks=3)

    cell, x, h = CustomCell(), _tensor(2, 3), _tensor(2, 4, seed=1)
    assert cell.weight_ih.shape == (12, 3) and cell.bias_hh.shape == (12,)
    expected = nn.GRUCell(3, 4)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(expected, name).set_data(getattr(cell, name))
    weights = [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
    np.testing.assert_array_equal(_gru_cell(x, h, *weights).asnumpy(), expected(x, h).asnumpy())
    parts = [w[:4] for w in weights]
    np.testing.assert_allclose(_rnn_tanh_cell(x, h, *parts).asnumpy(), np.tanh(
        x.asnumpy() @ parts[0].asnumpy().T + parts[2].asnumpy() + h.asnumpy() @ parts[1].asnumpy().T + parts[3].asnumpy()),
        rtol=1e-5, atol=1e-7)
    assert (_rnn_relu_cell(x, h, *parts).asnumpy() >= 0).all()
    four = [ops.concat([w, w[:4]]) for w in weights]
    assert [t.shape for t in _lstm_cell(x, (h, h), *four)] == [(2, 4), (2, 4)]


def test_cudnn_gru_reads_packed_weights() -> None:
    net, x, h = nn.GRU(3, 4), _tensor(5, 2, 3), _tensor(1, 2, 4, seed=1)
    packed = ops.concat([p.reshape(-1) for p in (net.weight_ih_l0, net.weight_hh_l0, net.bias_ih_l0, net.bias_hh_l0)])
    out, last, _, _ = CudnnGRU(3, 4, 1, True, False, 0.0)(x, h, packed)
    expected, end = net(x, h)
    np.testing.assert_allclose(out.asnumpy(), expected.asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(last.asnumpy(), end.asnumpy(), rtol=1e-6)


def test_strided_slice_grad_is_the_gradient_of_strided_slice() -> None:
    x = _tensor(4, 5)
    dy = _tensor(2, 2, seed=1)
    expected = ms.grad(lambda x: (ops.strided_slice(x, (1, 0), (4, 4), (2, 2)) * dy).sum())(x)
    np.testing.assert_array_equal(StridedSliceGrad()(dy, (4, 5), (1, 0), (4, 4), (2, 2)).asnumpy(), expected.asnumpy())


def test_flash_attention_score_gives_its_statistics_too() -> None:
    q = _tensor(1, 2, 3, 4)
    largest, total, nothing, out = FlashAttentionScore(2, scale_value=0.5, input_layout="BNSD")(q, q, q)
    products = q.asnumpy() @ q.asnumpy().swapaxes(-1, -2) * 0.5
    np.testing.assert_allclose(largest.asnumpy()[..., 0], products.max(-1), rtol=1e-5)
    np.testing.assert_allclose(total.asnumpy()[..., 0], np.exp(products - products.max(-1, keepdims=True)).sum(-1), rtol=1e-5)
    np.testing.assert_allclose(out.asnumpy(), ops.flash_attention_score(q, q, q, 2, scalar_value=0.5, input_layout="BNSD").asnumpy())
    assert nothing.shape == (0,)


@pytest.mark.parametrize("masked", [False, True])
def test_multi_head_attention_forward_is_the_layers(masked: bool) -> None:
    layer, x = nn.MultiheadAttention(8, 2), _tensor(5, 3, 8)
    mask = Tensor(np.triu(np.ones((5, 5), bool), 1)) if masked else None
    out, weights = nn_func.multi_head_attention_forward(
        x, x, x, 8, 2, layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0, layer.out_proj.weight, layer.out_proj.bias,
        attn_mask=mask, k_is_v=True, q_is_k=True,
    )
    expected = layer(x, x, x, attn_mask=mask)
    np.testing.assert_allclose(out.asnumpy(), expected[0].asnumpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weights.asnumpy(), expected[1].asnumpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="of 2 or of 3 axes"):
        nn_func._check_qkv_shape(3, 2, 3)


def test_small_inner_functions() -> None:
    assert _get_cache_prim(ops.Softmax)(1) is _get_cache_prim(ops.Softmax)(1) is not _get_cache_prim(ops.Softmax)(0)
    assert _primexpr(lambda n: n + 1)(1) == 2 and _function_forbid_reuse(lambda: 3)() == 3
    assert random_func._get_seed(3, "dropout")[1] == 3
    assert random_func._set_prim_op_user_data(ops.ReLU(), "random_cache", False).attrs["random_cache"] is False
    assert nn_func._interpolate_ext_scale_factor_convert_size(_tensor(1, 1, 4, 6), (0.5, 2.0)) == [2, 12]
    assert MSContext.get_instance() is MSContext.get_instance() and MSContext.get_instance().get_ascend_soc_version() == ""
    assert isinstance(ms.float32, typing.Float) and typing.is_subclass(ms.int8, typing.Int) and TensorPy is Tensor
    assert ParamInfo().clone().requires_grad and pyboost_empty([(2, 3), ms.float16, None]).dtype == ms.float16
    assert not isinstance(Tensor([1]), StubTensor) and ms.version.__version__ == ms.__version__


def test_inner_functions_of_checkpoints(tmp_path: Path) -> None:
    path = str(tmp_path / "own.ckpt")
    _exec_save(path, {"w": [[2, 2], "Float32", np.eye(2, dtype=np.float32)], "b": [[2], "Int32", Tensor([1, 2], ms.int32)]})
    (w, b) = _parse_ckpt_proto(path, None, None, False).value
    assert (w.tag, w.tensor.dims, w.tensor.tensor_type) == ("w", [2, 2], "Float32")
    assert np.frombuffer(b.tensor.tensor_content, np.int32).tolist() == [1, 2]
    parameter = Parameter(Tensor([0.0, 0.0]))
    _update_param(parameter, Parameter(Tensor([1.0, 2.0])), False)
    assert parameter.asnumpy().tolist() == [1.0, 2.0]
    assert len(_parse_ckpt_proto(path, None, None, True).value) == 2           # what is written here has a checksum


def test_warnings_of_one_key_are_written_once() -> None:
    lines: list[str] = []

    class Logger:
        def warning(self, text: str) -> None:
            lines.append(text)

    logger = Logger()
    speak = _LogActionOnce(logger, "test_warnings_of_one_key")(lambda: logger.warning("x"))
    speak(), speak()
    assert lines == ["x"]


# ---- the transformer library of 1.x --------------------------------------------------------------------------------------------------


def test_multi_head_attention_of_1_x_keeps_what_a_mask_forbids_out() -> None:
    net = MultiHeadAttention(2, 4, 4, 8, 2, hidden_dropout_rate=0.0, attention_dropout_rate=0.0, compute_dtype=ms.float32)
    x = _tensor(2, 4, 8)
    seen = Tensor(np.tril(np.ones((2, 4, 4), np.float32)))
    out, (keys, values) = net(x, x, x, seen)
    other = Tensor(np.concatenate([x.asnumpy()[:, :3], 5 + x.asnumpy()[:, 3:]], 1))
    second_output, _ = net(other, other, other, seen)
    np.testing.assert_allclose(out.asnumpy()[:, :3], second_output.asnumpy()[:, :3], rtol=1e-4, atol=1e-5)
    assert keys.shape == (2, 2, 4, 4) and values.shape == (2, 2, 4, 4)
    flat, _ = net(*[x.reshape(8, 8)] * 3, seen)
    np.testing.assert_allclose(flat.asnumpy(), out.asnumpy().reshape(8, 8), rtol=1e-5)


def test_experts_and_shares_of_one_process() -> None:
    net = MoE(8, 16, 0.0, moe_config=MoEConfig(expert_num=2, capacity_factor=2.0))
    out, loss = net(_tensor(2, 4, 8))
    assert out.shape == (2, 4, 8) and float(loss) > 0 and np.abs(out.asnumpy()).max() > 0
    assert FeedForward(8, 16, 0.1)(_tensor(2, 8)).shape == (2, 8)
    config = TransformerOpParallelConfig(recompute=True)
    block = nn.Dense(2, 2)
    _get_lambda_func()(block, layer_id=0, offset=0, parallel_config=config, layers=2)
    assert OpParallelConfig().model_parallel == MoEParallelConfig().dpmp.data_parallel == 1
    with pytest.raises(ValueError, match=r"data_parallel=0: expected an int from 1 on"):
        OpParallelConfig(0)


def test_checks_of_the_transformer_library() -> None:
    @transformer_layers._args_type_validator_check(size=transformer_layers._valid_value_checks([1, 2], "Net"))
    def checked_size(size: int) -> int:
        return size

    assert checked_size(2) == 2
    with pytest.raises(ValueError, match=r"Net\(size=3\): expected 1 or 2"):
        checked_size(size=3)
    with pytest.raises(ValueError, match="x of shape"):
        transformer_layers._LayerInputCheck.check_shape_equal((2, 3), "x", "Net", [2, 4])


# ---- exchanges and profiles ---------------------------------------------------------------------------------------------------------


def test_exchanges_give_what_one_process_sends() -> None:
    x = Tensor([1.0, 2.0])
    for name in ("all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor"):
        out, handle = getattr(comm_func, name)(x)
        assert out.asnumpy().tolist() == [1.0, 2.0] and out is not x and handle is None
    for out in (
        comm_func.reduce(x, 0), comm_func.scatter_tensor(x), comm_func.gather_into_tensor(x), comm_func.broadcast(x),
        comm_func.all_to_all_with_output_shape([(2,)], [x])[0][0], comm_func.all_to_all_single_with_output_shape((2,), x)[0],
    ):
        assert out.asnumpy().tolist() == [1.0, 2.0]
    comm_func.barrier()
    for call in (comm_func.send, comm_func.recv, comm_func.isend, comm_func.irecv):
        with pytest.raises(ValueError, match="process"):
            call(x, 1)
    with pytest.raises(ValueError, match="process"):
        comm_func.batch_isend_irecv([comm_func.P2POp("isend", x, 1)])


def test_a_profiler_writes_operators_and_a_trace(tmp_path: Path) -> None:
    watched = Profiler(output_path=str(tmp_path / "a"), profiler_level=ProfilerLevel.Level1, activities=[ProfilerActivity.CPU])
    ops.matmul(_tensor(8, 8), _tensor(8, 8))
    watched.add_metadata("net", "one product")
    watched.stop()
    record = json.loads(watched.op_analyse("MatMul", 0))
    assert record["device_id"] == 0 and [row["op_occurrences"] for row in record["MatMul"]] == [1]
    watched.analyse()
    (table,) = (tmp_path / "a").glob("*_ascend_ms/FRAMEWORK/cpu_op_detail_info_0.csv")
    assert any(row["op_type"] == "MatMul" for row in csv.DictReader(table.read_text().splitlines()))
    assert json.loads((table.parents[1] / "profiler_metadata.json").read_text())["net"] == "one product"


def test_a_schedule_names_the_steps_that_are_watched(tmp_path: Path) -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    assert [step for step in range(12) if plan.is_watched(step)] == [3, 4] and plan.to_dict()["active"] == 2
    with profile(schedule=plan, on_trace_ready=tensorboard_trace_handler(str(tmp_path), "me")) as watched:
        for _ in range(8):
            ops.exp(_tensor(4))
            watched.step()
    assert len(list(tmp_path.glob("me_*_ascend_ms"))) == 1


@pytest.mark.parametrize(("keywords", "kind", "text"), [
    ({"colour": 1}, TypeError, r"Profiler\(colour=1\): expected 'start_profile'"),
    ({"profile_memroy": True}, TypeError, "did you mean profile_memory"),
    ({"l2_cache": True}, ValueError, r"Profiler\(l2_cache=True\): expected False"),
    ({"aic_metrics": 3}, TypeError, "AicoreMetrics"),
    ({"job_id": "x"}, ValueError, "Ascend"),
])
def test_what_a_profiler_can_not_watch(keywords: dict[str, object], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        Profiler(**keywords)
    assert ExportType.Text.value == "text" and HostSystem.MEM.value == "mem"


# ---- mixed precision by hand


def test_lists_of_layers_that_change_precision() -> None:
    x = _tensor(2, 4)
    net = nn.SequentialCell(nn.Dense(4, 4), nn.LayerNorm((4,)))
    assert amp._auto_black_list(net, amp.AMP_BLACK_LIST, ms.float16)(x).dtype == ms.float16
    net = nn.SequentialCell(nn.Dense(4, 4), nn.LayerNorm((4,)))
    plain = net(x).asnumpy()
    out = amp._auto_mixed_precision_rewrite(net, ms.float16, white_list=amp.AMP_WHITE_LIST)(x)
    assert out.dtype == ms.float32 and 0 < np.abs(out.asnumpy() - plain).max() < 1e-2
    with pytest.raises(ValueError, match="expected one of the two"):
        amp._auto_mixed_precision_rewrite(net, ms.float16)
    half = nn.SequentialCell(nn.Dense(4, 4), nn.LayerNorm((4,))).to_float(ms.float16)
    amp._do_keep_batchnorm_fp32(half)
    assert amp._add_loss_network(half, nn.MSELoss(), ms.float16)(x, x).dtype == ms.float32
    assert amp._config_level["O2"]["keep_batchnorm_fp32"] is True


def test_names_that_mindspore_imports_where_programs_find_them() -> None:
    from mindspore import dataset
    from mindspore.common.api import cells_compile_cache
    from mindspore.dataset.text.transforms import Implementation
    from mindspore.profiler.mstx import Mstx, mark, range_end, range_start

    assert dataset.get_num_parallel_workers is dataset.config.get_num_parallel_workers and list(Implementation) == [0, 1]
    cell = nn.Dense(2, 2)
    cells_compile_cache[id(cell)] = cell.compile_cache           # as copies of Cells are entered in MindSpore RL
    assert cells_compile_cache.pop(id(cell)) == set()
    Mstx.mark("here")
    mark("here")
    range_end(range_start("a stretch"))


@pytest.mark.parametrize(("module", "names"), {
    "mindspore.ops.composite": "GradOperation HyperMap MultitypeFuncGraph clip_by_global_norm",
    "mindspore.ops.operations": "Add Pack GatherV2", "mindspore.nn.layer.basic": "Dense Linear OneHot Dropout1d",
    "mindspore.nn.layer.pooling": "MaxPool2d AdaptiveMaxPool2d", "mindspore.nn": "Cell Accuracy get_metric_fn",
    "mindspore.common": "Tensor dtype is_tensor load_mindir", "mindspore.train.metrics": "Accuracy Fbeta get_metrics",
    "mindspore.parallel": "Layout shard transform_checkpoints", "mindspore.train": "Model LossMonitor",
}.items())
def test_a_star_takes_what_mindspore_exports(module: str, names: str) -> None:
    room: dict[str, object] = {}
    exec(f"from {module} import *", room)
    assert room.keys() >= set(names.split())
    assert set(importlib.import_module(module).__all__) >= set(names.split())


@pytest.mark.parametrize("module", [
    "mindspore", "mindspore.common", "mindspore.common.dtype", "mindspore.common.hook_handle", "mindspore.numpy",
    "mindspore.numpy.math_ops",
    "mindspore.ops.operations", "mindspore.ops.operations.math_ops", "mindspore.ops.composite", "mindspore.ops.function.nn_func",
    "mindspore.train.metrics.accuracy", "mindspore.nn", "mindspore.dataset.core.datatypes",
])
def test_a_star_import_replaces_only_the_builtins_that_mindspores_does(module: str) -> None:
    namespace: dict[str, object] = {}
    exec(f"from {module} import *", namespace)
    replaced = {name for name in dir(builtins) if name in namespace and name != "__builtins__"} - {"__doc__", "__name__"}
    assert replaced == ({"abs", "divmod", "max", "min", "sum"} if module == "mindspore.numpy" else set())
    assert ms.float is ms.float32 and ms.common.int is ms.int32 and ms.numpy.round(1.4) == 1


def test_a_star_import_of_ops_replaces_builtins_as_in_mindspore() -> None:
    for module in ("mindspore.ops", "mindspore.ops.functional"):
        namespace: dict[str, object] = {}
        exec(f"from {module} import *", namespace)
        assert namespace["max"] is ms.ops.max and namespace["range"] is ms.ops.range


def test_a_model_may_be_built_later_by_mindspores_own_steps() -> None:
    class Late(ms.Model):
        def __init__(self, network: nn.Cell) -> None:
            self._network = network

        def compile(self, loss: nn.Cell, optimizer: nn.Optimizer, metrics: set[str], **kwargs: object) -> None:
            self._loss_fn, self._optimizer, self._amp_level = loss, optimizer, "O0"
            self._check_kwargs(kwargs)
            self._process_amp_args(kwargs)
            self._train_network = self._build_train_network()
            self._build_eval_network(metrics, eval_network=None, eval_indexes=None)
            self._build_predict_network()

    net = nn.Dense(3, 1, weight_init="zeros", bias_init="zeros")
    model = Late(net)
    model.compile(nn.MSELoss(), nn.SGD(net.trainable_params(), 0.5), {"mse"})
    rows = {"x": np.eye(3, dtype=np.float32), "y": np.ones((3, 1), np.float32)}
    data = ms.dataset.NumpySlicesDataset(rows, shuffle=False).batch(3)
    model.train(1, data)
    assert model.eval(data)["mse"] < 1 and model.predict(ms.Tensor(rows["x"])).shape == (3, 1)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "jit"])
def test_a_graph_does_not_share_cached_primitives(mode: int) -> None:
    """As in 2.10: the strategy of an instance that a program holds does not act on a call site in a graph."""
    shared = _get_cache_prim(ops.Neg)()
    shared.shard(((1,),))

    class Net(nn.Cell):
        def construct(self, x: ms.Tensor) -> ms.Tensor:
            return _get_cache_prim(ops.Neg)()(x) * (5 if "in_strategy" in _get_cache_prim(ops.Neg)().attrs else 1)

    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        net = Net()
        result = ms.jit(lambda x: net(x))(ms.Tensor([2.0])) if mode == ms.PYNATIVE_MODE else net(ms.Tensor([2.0]))
    finally:
        ms.set_context(mode=before)
        del shared.attrs["in_strategy"]
    assert float(result) == -2.0
