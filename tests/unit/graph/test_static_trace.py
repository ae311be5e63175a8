"""Our tracer records what torch's `make_fx` records."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from torchspore.engine.torch_internals import static_trace, torch_private
from torchspore.engine.torch_internals.torch_private import current_trace, graph_of, make_fx, without_modes


def lines(module: torch.fx.GraphModule) -> list[str]:
    """A graph as text, with the shape, strides, offset, dtype and device of each value, and its constants."""
    constants = [f"{name}: {value}" for name, value in vars(module).items() if isinstance(value, torch.Tensor)]
    constants += [f"{name}: {value}" for name, value in module.named_buffers()]
    return [f"{node.format_node()} {form(node.meta.get('val'))}" for node in module.graph.nodes] + constants


def form(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        facts = value.shape, value.stride(), value.storage_offset(), value.dtype, value.device, value.is_conj(), value.is_neg()
        return tuple(map(str, facts))
    return [form(item) for item in value] if isinstance(value, (tuple, list)) else str(value)


def views(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    return [x.T, x[1:], x.reshape(-1), x.unsqueeze(0).expand(2, 3, 3), *x.split(1), x.diagonal(), x.detach(), x[:0], y.permute(1, 0)[:, 1:]]


def writes(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    z = x.clone()
    part = z[1:]
    part.add_(1)
    part[0, 0] = 5.0
    z.T.mul_(2)
    torch.add(x, y, out=z)
    z.resize_(2, 2)
    return [z, part, x, x.relu_()]


def constants(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    one = torch.tensor(1.5)
    number = torch.tensor(3).item() + torch.tensor(2).add(1).item()
    return [x * one, x + number, torch.tensor([1.0, 2.0, 3.0]) + x, one.add_(1), torch.zeros(2), torch.arange(3), torch.full((2,), 7)]


def gradients(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        first = torch.autograd.grad((leaf.sin() * y).sum(), leaf, create_graph=True)[0]
        return [first, *torch.autograd.grad(first.exp(), leaf, torch.ones_like(first))]


def complex_numbers(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    z = torch.complex(x, y)
    return [z.conj() * z, z.imag, z.conj().imag.neg(), torch.fft.fft(x), torch.view_as_real(z), z.abs(), z.conj().resolve_conj()]


def random_numbers(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    return [torch.rand_like(x), torch.bernoulli(x.sigmoid()), torch.nn.functional.dropout(x, 0.5), x.normal_(), torch.randperm(4)]


def tuples(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    norm = torch.nn.functional.layer_norm(x, (3,), x[0], y[0])
    return [*x.sort(), *x.max(0), x.topk(2).values, *torch.svd(x), norm, *torch._foreach_add([x, y], 1.0), *x.unbind()]


def autocast(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    with torch.autocast("cpu", torch.bfloat16):
        return [x @ y, x @ y, torch.nn.functional.softmax(x @ y, -1)]


def inference(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    with torch.inference_mode():
        return [torch.nn.functional.linear(x, y), x.reshape(-1), torch.nn.functional.gelu(x)]


def layers(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    image, weight = x.reshape(1, 1, 3, 3), y[:2, :2].reshape(1, 1, 2, 2)
    f = torch.nn.functional
    return [
        f.conv2d(image, weight), f.conv2d(image.to(memory_format=torch.channels_last), weight), f.max_pool2d(image, 2),
        f.interpolate(image, size=(5, 5), mode="bilinear"), f.scaled_dot_product_attention(image, image, image), f.pad(x, (1, 1)),
        f.batch_norm(image, x[0, :1], y[0, :1], training=True), f.cross_entropy(x, y.argmax(1)), torch.einsum("ij,kj->ik", x, y),
    ]


def casts(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    return [x.half() + 1, x.int() // 2, x > y, (x > 0) & (y > 0), x.double().sum(), x.to(torch.bfloat16) @ y.to(torch.bfloat16)]


def sizes_of_values(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    chosen = torch.masked_select(x, x > 0)
    rows = x.nonzero()
    return [chosen.sum(), chosen * 2, rows + 1, torch.unique(y), y.relu().reshape(-1), torch.zeros(rows.shape[0]), y.relu_()]


FUNCTIONS: list[Callable[..., list[torch.Tensor]]] = [
    views, writes, constants, gradients, complex_numbers, random_numbers, tuples, autocast, inference, layers, casts, sizes_of_values,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("kind", ["plain", "views of one memory", "one tensor", "one memory without views"])
def test_records_what_torch_records(function: Callable[..., list[torch.Tensor]], kind: str) -> None:
    memory = torch.arange(36.0).reshape(6, 6) / 7 - 2
    x = memory[1:4, 1:4] if kind == "views of one memory" else memory[:3, :3].clone()
    y = x if kind == "one tensor" else memory[2:5, 2:5].T if kind == "views of one memory" else memory[3:, 3:].clone()
    if kind == "one memory without views":
        x, y = memory[:3, :3].clone(), torch.empty(0)
        y.set_(x.untyped_storage(), 0, (3, 3), (1, 3))
    with without_modes(), torch.no_grad():
        ours = graph_of(function, [x, y])
        theirs = make_fx(lambda *tensors: function(*tensors), tracing_mode="fake")(x, y)
    assert lines(ours) == lines(theirs)


@pytest.mark.parametrize("t", [
    torch.ones(2, 3), torch.ones(3, 2).T, torch.ones(0, 4), torch.tensor(1.5), torch.ones(2, dtype=torch.complex64), torch.arange(5),
    torch.ones(1, 2, 2, 2).to(memory_format=torch.channels_last), torch.ones(4)[1:], torch.empty_strided((2, 2), (5, 1)),
], ids=lambda t: f"{tuple(t.shape)}, {t.stride()}, {t.dtype}")
def test_a_stand_in_is_that_of_torch(t: torch.Tensor) -> None:
    ours, theirs = (mode.from_tensor(t) for mode in (static_trace.StaticFakeMode(), FakeTensorMode()))
    assert type(ours) is type(theirs) is FakeTensor
    assert form(ours) == form(theirs)
    assert vars(ours).keys() == vars(theirs).keys()
    assert {name: value for name, value in vars(ours).items() if name != "fake_mode"} == {
        name: value for name, value in vars(theirs).items() if name != "fake_mode"}
    assert torch._C._dispatch_keys(ours) == torch._C._dispatch_keys(theirs)
    assert ours.untyped_storage().nbytes() == theirs.untyped_storage().nbytes()
    copy = static_trace._snapshot(ours)
    assert form(copy) == form(theirs)
    assert torch._C._dispatch_keys(copy) == torch._C._dispatch_keys(theirs)
    with pytest.raises(RuntimeError, match="data pointer"):
        ours.data_ptr()


def test_an_operator_that_raises_leaves_no_node() -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        try:
            return [x.view(7, 7)]
        except RuntimeError:
            return [x * 3]

    module = graph_of(function, [torch.ones(3)])
    assert [node.op for node in module.graph.nodes] == ["placeholder", "call_function", "output"]


def test_traces_nest_and_end() -> None:
    inner = []

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        outer = current_trace()
        with without_modes():
            inner.append(graph_of(lambda y: [y + 1], [torch.ones(2)]))
            with pytest.raises(ZeroDivisionError):
                graph_of(lambda y: [y + 1 / 0], [torch.ones(2)])
        assert current_trace() == outer
        return [x * 2]

    module = graph_of(function, [torch.ones(3)])
    assert [str(node.target) for node in module.graph.nodes if node.op == "call_function"] == ["aten.mul.Tensor"]
    assert [str(node.target) for node in inner[0].graph.nodes if node.op == "call_function"] == ["aten.add.Tensor"]
    assert torch_private._traces.running is None and not torch_private.modes_of_now()


def test_a_real_tensor_in_a_trace_raises() -> None:
    other = torch.ones(3)
    with pytest.raises(Exception, match="FakeTensor"):
        graph_of(lambda x: [x + other], [torch.ones(3)])


def test_a_fake_tensor_has_its_device_outside_a_kernel_and_meta_inside() -> None:
    """A kernel of torch runs on meta tensors, so that the device of its operands must be `meta` then."""
    on_meta = torch.empty(3, device="meta")

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        fake_mode = x.fake_mode                                        # type: ignore[attr-defined]
        other = FakeTensor(fake_mode, on_meta, torch.device("cuda:1"))
        for tensor in (x, other):
            outside = torch.ops.prim.device.default(tensor)
            with pytest.MonkeyPatch.context() as inside:               # torch's manager also turns dispatch to the trace off
                inside.setattr(fake_mode, "in_kernel_invocation", True)
                devices.append((str(outside), str(torch.ops.prim.device.default(tensor))))
        return [x * 2]

    for trace in (graph_of, lambda traced, inputs: make_fx(traced, tracing_mode="fake")(*inputs)):
        devices: list[tuple[str, str]] = []
        module = trace(function, [torch.ones(3)])                      # type: ignore[operator]
        assert devices == [("cpu", "meta"), ("cuda:1", "meta")]
        assert [str(node.target) for node in module.graph.nodes if node.op == "call_function"] == ["aten.mul.Tensor"]
