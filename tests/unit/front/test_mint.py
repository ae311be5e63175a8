"""mindspore.mint where MindSpore's CPU has no kernel: by PyTorch, whose arguments and results mint has; random numbers; refusals."""
from __future__ import annotations

from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import mint
from parity.case import load

CASES = Path(__file__).resolve().parents[2] / "parity" / "cases"


def _module(stem):
    import sys

    load(CASES / f"{stem}.py")
    return sys.modules[f"parity_cases_{stem}"]


FUNCTIONS = _module("mint_functions")
NAMES = {"trace": torch.trace, "where": torch.where, "triangular_solve": lambda b, a: (torch.linalg.solve_triangular(a, b, upper=True), a)}


def _torch(value):
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(value))
    if isinstance(value, (tuple, list)):
        return type(value)(map(_torch, value))
    return getattr(torch, str(value).removeprefix("mindspore.").lower()) if isinstance(value, type(ms.float32)) else value


def _arrays(out):
    return [np.asarray(each) for each in (out if isinstance(out, (tuple, list)) else (out,))]


@pytest.mark.parametrize("label", sorted(FUNCTIONS.ELSEWHERE))
def test_what_ascend_alone_has_is_what_torch_says(label: str) -> None:
    name, arguments, options = FUNCTIONS.CALLS[label]
    result = getattr(mint, name)(*map(FUNCTIONS.tensors, arguments), **options)
    torch_options = {key: _torch(value) for key, value in options.items()}
    expected = NAMES.get(name) or getattr(torch, name)
    expected = expected(*map(_torch, arguments), **torch_options)
    result = [each.asnumpy() if isinstance(each, ms.Tensor) else each for each in (result if isinstance(result, tuple) else (result,))]
    for output, other in zip(result, _arrays(expected), strict=True):
        output = np.asarray(output)
        assert output.shape == other.shape and output.dtype == other.dtype, label
        np.testing.assert_allclose(output, other, rtol=1e-6)


def test_what_has_another_name_in_torch() -> None:
    x = ms.Tensor(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
    v = ms.Tensor(np.array([1.0, 2.0], np.float32))
    assert mint.addr_(mint.clone(x), v, v, 2, 0.5).asnumpy().tolist() == [[2.5, 5.0], [7.0, 10.0]]
    assert np.allclose(mint.npu_gelu(v).asnumpy(), torch.nn.functional.gelu(torch.tensor([1.0, 2.0])).numpy())
    sequence, weight = mint.ones((4, 1, 2)), mint.ones((3, 2, 5))
    assert mint.conv_tbc(sequence, weight, mint.zeros(5), 1).shape == (4, 1, 5)
    mean, invstd = mint.batch_norm_stats(x, 1e-5)
    assert mean.asnumpy().tolist() == [2.0, 3.0]
    out = mint.batch_norm_elemt(x, v, v, mean, invstd, 1e-5)
    assert np.allclose(out.asnumpy(), [[0.0, 0.0], [2.0, 4.0]], atol=1e-4)


def test_statistics_of_parts_are_those_of_all_rows() -> None:
    samples = np.random.default_rng(3).normal(size=(10, 3)).astype(np.float32)
    parts = [mint.batch_norm_stats(ms.Tensor(part), 1e-5) for part in (samples[:4], samples[4:])]
    running_mean, running_var = mint.zeros(3), mint.ones(3)
    mean, invstd = mint.batch_norm_gather_stats_with_counts(
        ms.Tensor(samples), mint.stack([part[0] for part in parts]), mint.stack([part[1] for part in parts]), running_mean, running_var,
        0.1, 1e-5, ms.Tensor(np.array([4.0, 6.0], np.float32)),
    )
    assert np.allclose(mean.asnumpy(), samples.mean(0), atol=1e-6)
    assert np.allclose(invstd.asnumpy(), 1 / np.sqrt(samples.var(0) + 1e-5), rtol=1e-5)
    assert np.allclose(running_mean.asnumpy(), 0.1 * samples.mean(0), atol=1e-6)
    assert np.allclose(running_var.asnumpy(), 0.9 + 0.1 * samples.var(0, ddof=1), rtol=1e-5)


def test_linalg_and_special() -> None:
    a = np.array([[2.0, 1.0], [1.0, 3.0]], np.float32)
    x = ms.Tensor(a)
    assert np.allclose(mint.linalg.inv(x).asnumpy(), np.linalg.inv(a))
    assert np.isclose(mint.linalg.vector_norm(x, 1).item(), 7.0)
    assert np.isclose(mint.linalg.matrix_norm(x, "nuc").item(), np.linalg.norm(a, "nuc"))
    assert np.isclose(mint.linalg.norm(x).item(), np.linalg.norm(a))
    q, r = mint.linalg.qr(x)
    assert np.allclose((q @ r).asnumpy(), a, atol=1e-6)
    assert mint.special.round(ms.Tensor([2.5, 3.5])).asnumpy().tolist() == [2.0, 4.0]
    assert np.allclose(mint.special.log_softmax(x, -1).asnumpy(), torch.log_softmax(torch.tensor(a), -1).numpy())
    assert np.allclose(mint.special.exp2(x).asnumpy(), 2**a)
    assert np.allclose(mint.special.expm1(x).asnumpy(), np.expm1(a)) and np.allclose(mint.special.log1p(x).asnumpy(), np.log1p(a))
    assert np.allclose(mint.special.erfc(x).asnumpy(), torch.erfc(torch.tensor(a)).numpy())
    assert np.allclose(mint.special.sinc(x).asnumpy(), np.sinc(a), atol=1e-6)


def test_random_numbers_follow_the_seed() -> None:
    def draw():
        ms.set_seed(7)
        x = mint.ones((2, 3))
        probabilities = mint.full((2, 3), 0.5)
        return [out.asnumpy() for out in (
            mint.rand(2, 3), mint.rand((2, 3)), mint.randn(4, dtype=ms.float64), mint.rand_like(x), mint.randn_like(x),
            mint.randint(3, 9, (50,)), mint.randint(5, (50,)), mint.randint_like(x, 4), mint.randint_like(x, 2, 4), mint.randperm(6),
            mint.normal(0.0, 1.0, (3,)), mint.normal(x, probabilities), mint.bernoulli(probabilities), mint.multinomial(probabilities, 2),
        )]

    first, second = draw(), draw()
    assert all((entry == other).all() for entry, other in zip(first, second))
    assert [out.shape for out in first] == [
        (2, 3), (2, 3), (4,), (2, 3), (2, 3), (50,), (50,), (2, 3), (2, 3), (6,), (3,), (2, 3), (2, 3), (2, 2),
    ]
    assert first[2].dtype == np.float64 and first[5].dtype == np.int64
    assert first[5].min() >= 3 and first[5].max() < 9 and set(first[6]) <= set(range(5)) and sorted(first[9]) == list(range(6))


def test_empty_tensors_have_a_shape() -> None:
    assert mint.empty(2, 3).shape == mint.empty((2, 3)).shape == (2, 3) and mint.empty(2, dtype=ms.int32).dtype == ms.int32
    assert mint.empty_like(mint.ones((2, 1))).shape == (2, 1)


@pytest.mark.parametrize(("call", "kind"), [
    (lambda: mint.rand(2, generator=3), TypeError),
    (lambda: mint.rand(2, device="cuda"), TypeError),
    (lambda: mint.empty(2, pin_memory=True), ValueError),
    (lambda: mint.randint(3), TypeError),
    (lambda: mint.randint(3, (2,), colour=1), TypeError),
    (lambda: mint.normal(0.0, 1.0), TypeError),
    (lambda: mint.max(mint.ones(2), keepdim=True), TypeError),
    (lambda: mint.xlogy(2, 3), TypeError),
    (lambda: mint.batch_norm_elemt(mint.ones((2, 2))), ValueError),
    (lambda: mint.cat(mint.ones((2, 2))), TypeError),
    (lambda: mint.nn.functional.dropout(mint.ones(2), 2.0), ValueError),
    (lambda: mint.nn.Embedding(3, 2, sparse=True), ValueError),
    (lambda: mint.nn.ConvTranspose2d(2, 2, 3, padding_mode="reflect"), ValueError),
    (lambda: mint.nn.functional.kl_div(mint.ones(2), mint.ones(2), "most"), ValueError),
])
def test_what_does_not_fit_is_refused(call, kind) -> None:
    with pytest.raises(kind):
        call()


def test_a_group_of_one_process() -> None:
    d = mint.distributed
    d.init_process_group()
    assert d.is_available() and d.is_initialized() and (d.get_rank(), d.get_world_size(), d.get_backend()) == (0, 1, "hccl")
    group = d.new_group([0])
    assert d.get_global_rank(group, 0) == d.get_group_rank(group, 0) == 0 and d.get_process_group_ranks(group) == [0]
    x, room = mint.ones((2, 2)), mint.zeros((2, 2))
    assert d.all_reduce(x) is None and d.all_reduce(x, "max", group, True).wait() is None and d.barrier() is None
    assert d.reduce(x, 0) is d.broadcast(x, 0) is None
    for call in (
        lambda: d.all_gather_into_tensor(room, x), lambda: d.all_gather([room], x), lambda: d.gather(x, [room]),
        lambda: d.scatter(room, [x]), lambda: d.reduce_scatter(room, [x]), lambda: d.reduce_scatter_tensor(room, x),
        lambda: d.reduce_scatter_tensor_uneven(room, x, [2]), lambda: d.all_gather_into_tensor_uneven(room, x, [2]),
        lambda: d.all_to_all([room], [x]), lambda: d.all_to_all_single(room, x, [2], [2]),
    ):
        room.zero_()
        call()
        assert room.asnumpy().tolist() == [[1, 1], [1, 1]]
    gathered = [None]
    d.all_gather_object(gathered, {"a": 1})
    assert gathered == [{"a": 1}]
    d.gather_object(5, gathered)
    d.broadcast_object_list(gathered)
    d.scatter_object_list(gathered, [6])
    assert gathered == [6]
    refusals = (
        lambda: d.send(x, 1), lambda: d.recv(x, 1), lambda: d.isend(x, 1), lambda: d.irecv(x, 1), lambda: d.send_object_list([1], 1),
        lambda: d.recv_object_list([1], 1), lambda: d.batch_isend_irecv([d.P2POp("isend", x, 1)]), lambda: d.broadcast(x, 1),
        lambda: d.init_process_group(world_size=2), lambda: d.all_gather_into_tensor(mint.ones(3), x),
    )
    for call in refusals:
        with pytest.raises(ValueError):
            call()
    d.destroy_process_group(group)
    d.destroy_process_group()
    assert not d.is_initialized()


FUNCTIONAL = _module("mint_functional")


def _near(result, expected) -> None:
    for output, other in zip(result, expected, strict=True):
        assert output.shape == other.shape and output.dtype == other.dtype
        np.testing.assert_allclose(output, other, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("label", sorted(FUNCTIONAL.ELSEWHERE))
def test_functions_of_layers_are_what_torch_says(label: str) -> None:
    name, arguments, options = FUNCTIONAL.CALLS[label]
    inputs = [FUNCTIONAL.tensors(each) for each in arguments]
    result = getattr(mint.nn.functional, name)(*inputs, **options)
    call = getattr(torch.nn.functional, name.rstrip("_"))
    copies = [_torch(each.copy()) if isinstance(each, np.ndarray) else each for each in arguments]
    expected = call(*copies, **{key: _torch(value) for key, value in options.items()})
    _near(FUNCTIONAL.plain(result).values(), _arrays(expected))
    if name.endswith("_") or options.get("inplace"):
        assert result is inputs[0]
        _near([inputs[0].asnumpy()], _arrays(expected))
    if name == "batch_norm":
        _near([each.asnumpy() for each in inputs[1:3]], [each.numpy() for each in copies[1:3]])


def _reference(name, arguments, options):
    """PyTorch's layer, whose losses and GELU take their one argument by name."""
    if arguments and (name.endswith("Loss") or name == "GELU"):
        return getattr(torch.nn, name)(**{"approximate" if name == "GELU" else "reduction": arguments[0]})
    return getattr(torch.nn, name)(*arguments, **options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("label", sorted(FUNCTIONAL.LAYERS_ELSEWHERE))
def test_layers_are_what_torch_says(label: str) -> None:
    name, (arguments, options), inputs = FUNCTIONAL.LAYERS[label]
    layer = FUNCTIONAL.filled(getattr(mint.nn, name)(*arguments, **options)).set_train()
    reference = _reference(name, arguments, options)
    state = {param.name: torch.from_numpy(param.asnumpy().copy()) for param in layer.get_parameters()}
    reference.load_state_dict(state)
    expected = reference(*[torch.from_numpy(each.copy()) for each in inputs])
    _near(FUNCTIONAL.plain(layer(*map(FUNCTIONAL.tensors, inputs))).values(), [each.detach().numpy() for each in (expected,)])
    for parameter in layer.get_parameters():
        _near([parameter.asnumpy()], [reference.state_dict()[parameter.name].numpy()])


def test_what_is_drawn_in_layers() -> None:
    ms.set_seed(3)
    x = mint.ones((4, 8, 5, 5))
    out = mint.nn.Dropout(0.5).set_train()(x).asnumpy()
    assert set(np.unique(out)) == {0.0, 2.0}
    channels = mint.nn.Dropout2d(0.5).set_train()(x).asnumpy().reshape(32, 25)
    assert set(np.unique(channels)) == {0.0, 2.0} and (channels == channels[:, :1]).all()
    assert mint.nn.functional.dropout(x, 0.5, inplace=True) is x and (x.asnumpy() == 0).any()
    assert mint.nn.functional.dropout2d(x, training=False) is x


def test_unpooling_turned_convolution_and_long_rows() -> None:
    image = ms.Tensor(FUNCTIONAL.IMAGE)
    values, indices = mint.nn.MaxPool2d(2, return_indices=True)(image)
    out = mint.nn.MaxUnpool2d(2)(values, indices).asnumpy()
    assert out.shape == image.shape and np.isclose(out.sum(), values.asnumpy().sum(), rtol=1e-5)
    assert mint.nn.functional.max_unpool2d(values, indices, 2, output_size=(6, 6)).shape == image.shape
    turned = mint.nn.ConvTranspose2d(4, 2, 3, stride=2)
    assert turned(image).shape == (2, 2, 13, 13) and turned(image, (14, 14)).shape == (2, 2, 14, 14)
    with pytest.raises(ValueError):
        turned(image, (20, 20))
    embedding = mint.nn.Embedding(3, 4, max_norm=1.0, _weight=ms.Tensor(FUNCTIONAL.WEIGHT))
    rows = embedding(ms.Tensor(np.array([0, 2]))).asnumpy()
    assert (np.linalg.norm(rows, axis=1) <= 1.0 + 1e-6).all()
    assert embedding.weight.asnumpy()[1].tolist() == FUNCTIONAL.WEIGHT[1].tolist()
    counted = ms.grad(lambda w: mint.nn.functional.embedding(ms.Tensor([0, 0, 1]), w, scale_grad_by_freq=True).sum())
    assert counted(ms.Tensor(FUNCTIONAL.WEIGHT)).asnumpy()[:, 0].tolist() == [1.0, 1.0, 0.0]
    assert mint.nn.SyncBatchNorm(4).set_train()(image).shape == image.shape


@pytest.mark.parametrize("momentum", [0.3, None])
def test_running_values_of_batch_norm(momentum) -> None:
    layer, reference = mint.nn.BatchNorm2d(4, momentum=momentum).set_train(), torch.nn.BatchNorm2d(4, momentum=momentum)
    for factor in (1, 2, 3):
        layer(ms.Tensor(FUNCTIONAL.IMAGE * np.float32(factor)))
        reference(torch.from_numpy(FUNCTIONAL.IMAGE * np.float32(factor)))
    for p in layer.get_parameters():
        _near([p.asnumpy()], [reference.state_dict()[p.name].numpy()])
    out = layer.set_train(False)(ms.Tensor(FUNCTIONAL.IMAGE)).asnumpy()
    _near([out], [reference.eval()(torch.from_numpy(FUNCTIONAL.IMAGE)).detach().numpy()])


@pytest.mark.parametrize(("name", "options"), [
    ("Adam", {"weight_decay": 0.1, "amsgrad": True}), ("AdamW", {"betas": (0.8, 0.9)}), ("FusedAdamW", {}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
])
def test_optimizers_are_what_torch_says(name: str, options) -> None:
    start = np.array([1.0, -2.0, 3.0], np.float32)
    mine = ms.Parameter(ms.Tensor(start), name="w")
    optimizer = getattr(mint.optim, name)([mine], **options)
    weight = torch.nn.Parameter(torch.from_numpy(start.copy()))
    reference = getattr(torch.optim, name.removeprefix("Fused"))([weight], **options)
    for step in range(4):
        gradient = np.array([0.1, -0.2, 0.3], np.float32) * np.float32(step + 1)
        optimizer((ms.Tensor(gradient),))
        weight.grad = torch.from_numpy(gradient)
        reference.step()
    np.testing.assert_allclose(mine.asnumpy(), weight.detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_modes_of_padding_and_batch_norm_in_both_modes(mode: int) -> None:
    ms.set_context(mode=mode)
    image = ms.Tensor(FUNCTIONAL.IMAGE)
    for padding in ("same", 1, "valid"):
        mine = FUNCTIONAL.filled(mint.nn.Conv2d(4, 4, 3, padding=padding, padding_mode="reflect"))
        reference = torch.nn.Conv2d(4, 4, 3, padding=padding, padding_mode="reflect")
        reference.load_state_dict({parameter.name: torch.from_numpy(parameter.asnumpy().copy()) for parameter in mine.get_parameters()})
        np.testing.assert_allclose(mine(image).asnumpy(), reference(torch.from_numpy(FUNCTIONAL.IMAGE)).detach().numpy(), atol=1e-4)
    norm = mint.nn.BatchNorm2d(4).set_train()
    for _ in range(2):
        norm(image)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert norm.num_batches_tracked.asnumpy() == 2
    np.testing.assert_allclose(norm.running_mean.asnumpy(), 0.19 * FUNCTIONAL.IMAGE.mean((0, 2, 3)), atol=1e-6)
