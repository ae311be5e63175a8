"""Graph kernels seen from outside: how many kernels a call launches, which operators are left, the numbers, the gradients, the files."""
from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support import fake_timings, kernel_compilers, kernel_launches, processes

from torchspore.context import effects
from torchspore.context.public import scope
from torchspore.context.store import STORE
from torchspore.engine.torch_internals import torch_private
from torchspore.graph.backend import inductor


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, enable_graph_kernel=False, graph_kernel_flags="", jit_config={})


def data(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.asarray(np.random.RandomState(seed).randn(*shape), np.float32))


class Net(nn.Cell):
    """Elementwise operators around a product, a layer norm, a softmax and a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.norm = nn.Dense(8, 8), nn.LayerNorm((8,))

    def construct(self, x, b):
        y = ops.relu(x + b) * 2 + x * 1
        z = self.fc(y) * 0.5 + ops.exp(x)
        z = self.norm(z) * (x + 1) + (x + 1)
        return ops.softmax(z).sum(0) + 1


class Exact(nn.Cell):
    """Operators whose results IEEE defines to the last bit."""

    def construct(self, x, y):
        return ops.relu(x * y + 3) / (ops.abs(y) + 1) - ops.maximum(x, y) * (x > 0)


@pytest.fixture
def launched() -> Callable[..., list[str]]:
    """What a call launches with these flags; the graph is captured before it counts."""

    def counted(net: Any, *inputs: Tensor, flags: str = "", mode: int = ms.GRAPH_MODE, **options: Any) -> list[str]:
        ms.set_context(mode=mode, graph_kernel_flags=flags, **options)
        net(*inputs)
        return kernel_launches.launched(lambda: net(*inputs))

    return counted


G = "generated"
INPUTS = data(4, 8), data(8, seed=1)


@pytest.mark.parametrize(("flags", "left"), [
    ("--opt_level=0", "add relu_ mul mul add_ addmm mul exp add_ native_layer_norm add mul add_ _softmax sum add"),
    ("--opt_level=1", "G addmm exp G native_layer_norm add add G _softmax sum add"),
    ("--opt_level=2", "G addmm G native_layer_norm G _softmax sum add"),
    ("--opt_level=3", "G addmm G"),
    ("--opt_level=3 --enable_stitch_fusion=false", "G addmm G native_layer_norm G _softmax sum add"),
    ("--opt_level=2 --enable_pass=stitch_fusion", "G addmm G"),
    ("--opt_level=2 --enable_expand_ops=Softmax", "G addmm G native_layer_norm G sum add"),
    ("--opt_level=3 --disable_expand_ops=Softmax,LayerNorm", "G addmm G native_layer_norm G _softmax G"),
    ("--opt_level=3 --enable_expand_ops_only=Softmax", "G addmm G native_layer_norm G"),
    ("--opt_level=2 --disable_pass=graph_kernel_cluster",
     "add relu_ mul add_ addmm mul exp add_ native_layer_norm add mul add_ _softmax sum add"),
    ("--opt_level=1 --enable_cluster_ops_only=Add,ReLU",
     "G mul mul add_ addmm mul exp add_ native_layer_norm add mul add add_ _softmax sum add"),
    ("--opt_level=1 --disable_cluster_ops=Mul", "G mul mul add_ addmm mul exp add_ native_layer_norm add mul add add_ _softmax sum add"),
    ("--opt_level=2 --enable_cluster_ops=Softmax", "G addmm G native_layer_norm G sum add"),
    ("--opt_level=2 --composite_op_limit_size=2", "G G addmm G add native_layer_norm G G _softmax sum add"),
])  # fmt: skip
def test_what_is_launched(flags: str, left: str, launched: Any) -> None:
    net = Net()
    result = launched(net, *INPUTS, flags=flags)
    assert sorted(result) == sorted(left.replace("G", G).split()), " ".join(result)
    expected = plain(net, *INPUTS)
    np.testing.assert_allclose(net(*INPUTS).asnumpy(), expected, rtol=2e-6, atol=2e-6)


def plain(net: Any, *inputs: Tensor) -> Any:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    array = net(*inputs).asnumpy()
    ms.set_context(mode=ms.GRAPH_MODE)
    return array


def test_the_switch_is_level_two_and_the_flag_wins(launched: Any) -> None:
    net = Net()
    assert len(launched(net, *INPUTS, enable_graph_kernel=True)) == 8
    assert len(launched(net, *INPUTS, flags="--opt_level=3")) == 3
    assert len(launched(net, *INPUTS, flags="--opt_level=0")) == 16
    assert len(launched(net, *INPUTS, enable_graph_kernel=False)) == 16
    assert ms.get_context("enable_graph_kernel") is False and len(launched(net, *INPUTS, flags="--opt_level=2")) == 8


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("shape", [(4, 8), (3, 5, 7), (1000,), ()])
def test_plain_arithmetic_keeps_its_bits(level: int, shape: tuple[int, ...], launched: Any) -> None:
    net, x, y = Exact(), data(*shape), data(*shape, seed=1)
    assert launched(net, x, y, flags=f"--opt_level={level}").count(G) == 1
    np.testing.assert_array_equal(net(x, y).asnumpy(), plain(net, x, y))


def test_exact_precision_mode_leaves_out_what_may_be_rounded_otherwise(launched: Any) -> None:
    net = Net()
    result = launched(net, *INPUTS, flags="--opt_level=3 --exact_precision_mode")
    assert result == [G, "addmm", "exp", G, "native_layer_norm", G, "_softmax", "sum", "add"]
    np.testing.assert_array_equal(net(*INPUTS).asnumpy(), plain(net, *INPUTS))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_gradients_and_training(level: int) -> None:
    def trained(mode: int) -> tuple[list[float], list[Any]]:
        ms.set_context(mode=mode, graph_kernel_flags=f"--opt_level={level}")
        ms.set_seed(3)
        net = nn.SequentialCell(nn.Dense(8, 16), nn.GELU(), nn.LayerNorm((16,)), nn.Dropout(p=0.2), nn.Dense(16, 5))
        cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Adam(net.trainable_params(), 1e-2))
        cell.set_train()
        ms.set_seed(5)
        losses = [float(cell(data(6, 8), Tensor([0, 1, 2, 3, 4, 0], ms.int32))) for _ in range(3)]
        return losses, [p.asnumpy() for p in net.get_parameters()]

    plain_losses, plain_state = trained(ms.PYNATIVE_MODE)
    losses, state = trained(ms.GRAPH_MODE)
    np.testing.assert_allclose(losses, plain_losses, rtol=1e-5)
    for a, b in zip(state, plain_state, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5)


def test_reductions_at_the_end_and_how_much_comes_before(launched: Any) -> None:
    class Sum(nn.Cell):
        def construct(self, x):
            return (ops.relu(x * 2) + 1).sum() * 3 + 4

    x = data(16, 16)
    assert launched(Sum(), x, flags="--opt_level=2") == [G, G]
    assert launched(Sum(), x, flags="--opt_level=3") == [G]
    assert launched(Sum(), x, flags="--opt_level=2 --reduce_fuse_depth=1") == [G, G, G]
    assert launched(Sum(), x, flags="--opt_level=2 --reduce_fuse_depth=0") == [G, "sum", G]
    net = Sum()
    launched(net, x, flags="--opt_level=2")
    np.testing.assert_allclose(net(x).asnumpy(), plain(net, x), rtol=1e-5)


class Many(nn.Cell):
    """Independent operators, of one shape and of others, some of which read the same value."""

    def construct(self, a, b, c):
        return ops.relu(a) * 2, ops.abs(b) + 1, c * 2 + 1, c - c / 3


def test_small_independent_kernels_become_one(launched: Any) -> None:
    inputs = data(4, 4), data(4, 4, seed=1), data(9, 4, seed=2)
    assert launched(Many(), *inputs, flags="--opt_level=2") == [G, G, G, G]
    assert launched(Many(), *inputs, flags="--opt_level=3") == [G, G]
    assert launched(Many(), *inputs, flags="--opt_level=3 --disable_pass=parallel_fusion") == [G, G, G]
    net = Many()
    launched(net, *inputs, flags="--opt_level=3")
    for result, expected in zip(net(*inputs), [o.asnumpy() for o in Many().construct(*inputs)], strict=True):
        np.testing.assert_array_equal(result.asnumpy(), expected)


def test_readers_of_one_value_become_one_kernel(launched: Any) -> None:
    class Readers(nn.Cell):
        def construct(self, x):
            return x + 1, x * 3, (x - 2) / 5

    x = data(300, 300)
    large = "--opt_level=2 --disable_pass=parallel_fusion"
    assert len(launched(Readers(), x, flags=large)) == 3
    assert launched(Readers(), x, flags=f"{large} --enable_horizontal_fusion") == [G]


def test_writes_and_random_numbers_stay(launched: Any) -> None:
    class Stateful(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.steps, self.drop, self.norm = ms.Parameter(Tensor(0.0)), nn.Dropout(p=0.5), nn.BatchNorm1d(8)

        def construct(self, x):
            before = self.steps * 2 + 1
            self.steps += 1
            return self.drop(self.norm(x * 2 + 1)) * 3 + before + self.steps

    answers = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode, graph_kernel_flags="--opt_level=3")
        ms.set_seed(4)                         # the layer takes its seeds when it is constructed
        net = Stateful()
        net.set_train()
        answers.append([*[net(data(6, 8)).asnumpy() for _ in range(3)], *[p.asnumpy() for p in net.get_parameters()]])
    for a, b in zip(*answers, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_branches_and_loops_have_separate_kernels(launched: Any) -> None:
    class Loops(nn.Cell):
        def construct(self, x):
            if x.sum() > 0:
                x = ops.relu(x) * 2 + 1
            else:
                x = ops.abs(x) * 3 - 1
            while x.max() > 1:
                x = x * 0.5 - 0.1
            return x

    for x in (data(4, 4), -data(4, 4)):
        net = Loops()
        assert launched(net, x, flags="--opt_level=1").count(G) > 1
        np.testing.assert_array_equal(net(x).asnumpy(), plain(net, x))


def test_measured_kernels_that_lose_stay_operators(launched: Any, measured_by: Any) -> None:
    from torchspore.graph.compile_cache import autotune_cache

    autotune_cache.forget()
    measured_by(fake_timings.takes(operators=1.0, kernel=2.0))
    assert launched(Exact(), data(8, 3), data(8, 3), flags="--opt_level=1 --online_tuning=1").count(G) == 0
    autotune_cache.forget()
    measured_by(fake_timings.takes(operators=2.0, kernel=1.0))
    assert launched(Exact(), data(9, 3), data(9, 3), flags="--opt_level=1 --online_tuning=1").count(G) == 1


def test_settings_of_the_generator_reach_it(launched: Any) -> None:
    from torchspore.engine.torch_internals import torch_private

    seen: list[dict[str, Any]] = []
    before = torch_private.inductor

    def watched(module: Any, inputs: Any, options: Any, *rest: Any) -> Any:
        seen.append(options)
        return before(module, inputs, options, *rest)

    with inductor.compiled_by(watched):
        launched(Exact(), data(7, 3), data(7, 3), flags="--opt_level=1 --enable_vectorization=false --cpu_refer_thread_num=1")
    assert (seen[0]["cpp.simdlen"], seen[0]["cpp.threads"]) == (1, 1)


def test_levels_above_simplify_and_choose_by_time(launched: Any) -> None:
    net = Net()
    ms.set_context(jit_config={"jit_level": "O1"})
    result = launched(net, *INPUTS, flags="--opt_level=2")
    assert result.count("mul") + result.count("add") + result.count("add_") <= 9          # 11 without arithmetic and equal values
    np.testing.assert_allclose(net(*INPUTS).asnumpy(), plain(net, *INPUTS), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("flags", "forbidden"), [("", set()), (" --disable_cluster_ops=Exp,ReLU", {"exp", "relu"})])
def test_levels_above_fuse_what_the_flags_allow(
    flags: str, forbidden: set[str], launched: Any, without_kernels: kernel_compilers.Without, measured_by: Any,
) -> None:
    from torchspore.graph.compile_cache import autotune_cache

    autotune_cache.forget()
    measured_by(lambda forms, inputs, turns: dict.fromkeys(forms, 1.0))
    ms.set_context(jit_config={"jit_level": "O1"})
    launched(Net(), data(37, 8), data(8, seed=1), flags=f"--opt_level=3{flags}")
    seen = without_kernels.seen
    assert {"mul", "exp", "relu"} - forbidden <= seen and not seen & forbidden
    autotune_cache.forget()


# ---- what is said and written

def test_dump_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launched: Any) -> None:
    monkeypatch.chdir(tmp_path)
    launched(Exact(), data(3), data(3), flags="--opt_level=1 --dump_as_text")
    (path,) = tmp_path.glob("graph_kernel_dump/*")
    assert path.name == f"graph_kernel_cluster_{os.getpid()}.txt"
    text = path.read_text()
    head, *lines, closing = text.splitlines()
    assert re.fullmatch(
        r"Source nodes of Default/GraphKernel_\w+_fusion-op0 = @kernel_graph\d+:\w+\{\[0\]: ValueNode<FuncGraph> .*\}", head)
    assert closing == "=" * 23 and all(re.fullmatch(r"  \S+/\w+-op\d+ = @kernel_graph\d+:\w+\{\[0\]: .*\}", line) for line in lines)
    assert [re.search(r"/(\w+)-op", line)[1] for line in lines][:3] == ["Mul", "Add", "ReLU"]  # type: ignore[index]


def test_a_dump_that_can_t_be_written_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], launched: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph_kernel_dump").write_text("a file")
    for length in (3, 5):
        launched(Exact(), data(length), data(length), flags="--opt_level=1 --dump_as_text")
    messages = [line for line in capfd.readouterr().err.splitlines() if "dump_as_text" in line]
    assert len(messages) == 1 and re.fullmatch(
        r"torchspore: \S+:\d+: --dump_as_text: \S+/graph_kernel_cluster_\d+.txt can't be written \(File exists\); "
        r"the program continues without it\.", messages[0])


def test_a_flag_without_an_effect_is_an_error_in_strict_mode(monkeypatch: pytest.MonkeyPatch, launched: Any) -> None:
    STORE.reset("context")                    # strict mode would name what an earlier test has set
    launched(Exact(), data(2), data(2), flags="--opt_level=1 --enable_cce_lib")
    assert "--enable_cce_lib has no effect here: it is a library of Ascend's own compiler" in effects.notes()["graph kernels"]
    monkeypatch.setenv("TORCHSPORE_STRICT", "1")
    with pytest.raises(Exception, match="graph_kernel_flags: means nothing here: --enable_lite_conv_tuning: convolutions are calls"):
        launched(Exact(), data(6), data(6), flags="--opt_level=1 --enable_lite_conv_tuning")
    monkeypatch.delenv("TORCHSPORE_STRICT")
    with scope(mode=ms.PYNATIVE_MODE):
        ms.ops.relu(data(2))                   # strict mode waits for it, to look whether graphs are used at all


class Sparse(nn.Cell):
    """Elements of a Tensor at the positions of a CSR matrix."""

    def construct(self, starts, columns, values, x):
        return (ops.csr_mul(ms.CSRTensor(starts, columns, values, (3, 4)), x) * 2.0).values + 1.0


def test_csr_fusion_includes_the_lookups_of_sparse_matrices(launched: Any) -> None:
    starts, columns = Tensor([0, 1, 3, 4], ms.int32), Tensor([0, 1, 3, 2], ms.int32)
    inputs = starts, columns, data(4), data(3, 4, seed=1)
    before = launched(Sparse(), *inputs, flags="--opt_level=2")
    after = launched(Sparse(), *inputs, flags="--opt_level=2 --enable_csr_fusion")
    assert "index" in before and "index" not in after and len(after) < len(before)
    values, x = inputs[2].asnumpy(), inputs[3].asnumpy()
    np.testing.assert_array_equal(Sparse()(*inputs).asnumpy(), 2 * values * x[[0, 1, 1, 2], [0, 1, 3, 2]] + 1)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], Any]]:
    """The settings and the result of each compilation by Inductor, which the kernel store does not replace."""
    done: list[tuple[dict[str, Any], Any]] = []
    compile_ = torch_private.inductor

    def inductor_(module: Any, inputs: Any, options: dict[str, Any], *more: Any) -> Any:
        done.append((options, compile_(module, inputs, options, *more)))
        return done[-1][1]

    monkeypatch.setattr(inductor.kernel_store, "find", lambda key: None)
    monkeypatch.setattr(torch_private, "inductor", inductor_)
    return done


@pytest.mark.skipif("avx512f" not in Path("/proc/cpuinfo").read_text(), reason="the processor has no AVX-512")
@pytest.mark.parametrize(("feature", "values"), [("avx", 8), ("avx512", 16), ("sse", 0)])
def test_cpu_feature_chooses_the_vectors_of_kernels(feature: str, values: int, launched: Any, compiled: Any) -> None:
    launched(Exact(), data(32, 5 + values), data(32, 5 + values), flags=f"--opt_level=1 --cpu_feature={feature}")
    (_, kernel), = compiled
    lengths = re.findall(r"Vectorized<float>::loadu\(in_ptr0 \+ .*static_cast<int64_t>\((\d+)\)\)", kernel.source)
    assert lengths[:1] == [str(values)] * bool(values)


def test_cpu_feature_that_the_machine_lacks_is_reported(launched: Any, capfd: pytest.CaptureFixture[str]) -> None:
    launched(Exact(), data(7), data(7), flags="--opt_level=1 --cpu_feature=altivec")
    assert "--cpu_feature=altivec is none of the instruction sets of this machine (sse" in capfd.readouterr().err


def test_debug_mode_compiles_with_symbols(launched: Any, compiled: Any) -> None:
    sizes = []
    for flag in ("", "--enable_debug_mode"):
        launched(Exact(), data(9), data(9), flags=f"--opt_level=1 {flag}")
        sizes.append(sum(b"-O0" in Path(library).read_bytes() for library in compiled[-1][1].libraries.values()))
    assert sizes == [0, 1]


PROGRAM = """
import mindspore as ms, numpy as np
from mindspore import nn, ops
ms.set_context(mode=ms.GRAPH_MODE, enable_graph_kernel=True)
class Net(nn.Cell):
    def construct(self, x):
        return ops.relu(x * 2 + 1) - 3
for n in (3, 4):
    print(Net()(ms.Tensor(np.ones(n, np.float32))))
"""


def test_without_a_compiler_it_is_reported_once_and_operators_run(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ran = processes.torchspore("explain", "program.py", cwd=tmp_path, extra={
        "CXX": "/nowhere/g++", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "kernels"),
    })
    assert ran.code == 0 and ran.out.startswith("[0. 0. 0.]\n[0. 0. 0. 0.]\n")
    assert [line for line in ran.err.splitlines() if line.startswith("torchspore: ")] == [
        "torchspore: program.py:9: graph kernels are generated, and the C++ compiler is missing (g++ or what CXX names); graphs run "
        "without them.",
    ]
    assert "opt_level 2: of 8 kernels 8 are left, 0 of them generated, because there is no working C++ compiler" in ran.out


def test_what_inductor_cannot_write_is_omitted_and_the_rest_is_fused(launched: Any) -> None:
    from torchspore.engine.torch_internals import torch_private

    before = torch_private.inductor

    def choosy(module: Any, *rest: Any) -> Any:
        if any("maximum" in str(node.target) for node in module.graph.nodes):
            raise AssertionError("no lowering of this")
        return before(module, *rest)

    x = data(11, 3)
    with inductor.compiled_by(choosy):
        assert launched(Exact(), x, x, flags="--opt_level=1").count(G) == 0
        assert launched(Many(), x, x, x, flags="--opt_level=1").count(G) == 4
    assert any("no lowering of this" in line for line in effects.notes()["compiler"])


def test_the_numbers_of_torch_are_counted_alike() -> None:
    x = torch.ones(3)
    assert kernel_launches.launched(lambda: (x + 1).view(3) * 2) == ["add", "mul"]


class Rows(nn.Cell):
    """A size that depends on values is an argument of a view."""

    def construct(self, x: Any) -> Any:
        rows = ops.nonzero(x > 0) * 2 + 1
        counted = ops.bincount(ops.abs(rows).astype(ms.int32).reshape(-1))
        return ops.reciprocal(counted + 1)


class Growing(nn.Cell):
    """A Tensor of such a size is summed in a loop."""

    def construct(self, x: Any) -> Any:
        steps = 0
        while x.sum() < 100 and steps < 5:
            x = x + x[x > 0].sum()
            steps += 1
        return x


@pytest.mark.parametrize("cell", [Rows, Growing])
def test_sizes_that_depend_on_values_stay_outside_of_kernels(cell: type[nn.Cell]) -> None:
    net, inputs = cell(), [data(4, 4, seed=seed) for seed in (0, 1, 2)]
    expected = [net(x).asnumpy() for x in inputs]
    ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O1"})
    for x, numbers in zip(inputs, expected):
        np.testing.assert_allclose(net(x).asnumpy(), numbers, rtol=1e-5)
