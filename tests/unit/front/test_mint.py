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
    found = getattr(mint, name)(*map(FUNCTIONS.tensors, arguments), **options)
    told = {key: _torch(value) for key, value in options.items()}
    expected = NAMES.get(name) or getattr(torch, name)
    expected = expected(*map(_torch, arguments), **told)
    found = [each.asnumpy() if isinstance(each, ms.Tensor) else each for each in (found if isinstance(found, tuple) else (found,))]
    for one, other in zip(found, _arrays(expected), strict=True):
        one = np.asarray(one)
        assert one.shape == other.shape and one.dtype == other.dtype, label
        np.testing.assert_allclose(one, other, rtol=1e-6)


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


def test_statistics_of_parts_are_those_of_the_whole() -> None:
    whole = np.random.default_rng(3).normal(size=(10, 3)).astype(np.float32)
    parts = [mint.batch_norm_stats(ms.Tensor(part), 1e-5) for part in (whole[:4], whole[4:])]
    running_mean, running_var = mint.zeros(3), mint.ones(3)
    mean, invstd = mint.batch_norm_gather_stats_with_counts(
        ms.Tensor(whole), mint.stack([part[0] for part in parts]), mint.stack([part[1] for part in parts]), running_mean, running_var,
        0.1, 1e-5, ms.Tensor(np.array([4.0, 6.0], np.float32)),
    )
    assert np.allclose(mean.asnumpy(), whole.mean(0), atol=1e-6)
    assert np.allclose(invstd.asnumpy(), 1 / np.sqrt(whole.var(0) + 1e-5), rtol=1e-5)
    assert np.allclose(running_mean.asnumpy(), 0.1 * whole.mean(0), atol=1e-6)
    assert np.allclose(running_var.asnumpy(), 0.9 + 0.1 * whole.var(0, ddof=1), rtol=1e-5)


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
    assert all((one == other).all() for one, other in zip(first, second))
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
    places = [None]
    d.all_gather_object(places, {"a": 1})
    assert places == [{"a": 1}]
    d.gather_object(5, places)
    d.broadcast_object_list(places)
    d.scatter_object_list(places, [6])
    assert places == [6]
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
