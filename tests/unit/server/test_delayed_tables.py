"""Large tables in a parameter server job are drawn by rows, with the bits of the full table."""
from __future__ import annotations

import itertools
from typing import Any

import mindspore as ms
import pytest
import torch
from mindspore import nn

from torchspore.distributed.parameter_server.values import rows_between, unreadable
from torchspore.engine.tensors.delayed_values import is_delayed

ROWS = 40_000


@pytest.fixture
def role(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in {"MS_ROLE": "MS_PSERVER", "MS_WORKER_NUM": "1", "MS_SERVER_NUM": "1"}.items():
        monkeypatch.setenv(name, value)
    ms.set_ps_context(enable_ps=True)
    yield
    ms.reset_ps_context()


def table(init: Any, dtype: Any) -> Any:
    ms.set_seed(4)
    before = nn.Dense(3, 3)                                # draws before and after must be those of a program without servers
    lookup = nn.EmbeddingLookup(ROWS, 16, init, target="DEVICE", dtype=dtype)
    after = nn.Dense(3, 3)
    return lookup.embedding_table, [cell.weight.asnumpy().tolist() for cell in (before, after)]


@pytest.mark.parametrize("dtype", [ms.float32, ms.float16, ms.bfloat16])
@pytest.mark.parametrize("init", ["normal", "uniform", "xavier_uniform", "truncatedNormal", "zeros", "ones", 0.25])
def test_any_rows_have_the_bits_of_the_full_table(role: Any, init: Any, dtype: Any) -> None:
    delayed, others = table(init, dtype)
    assert is_delayed(delayed._t)
    generator = torch.Generator().manual_seed(1)
    bounds = sorted({0, ROWS, *torch.randint(0, ROWS, (6,), generator=generator).tolist()})
    parts = [rows_between(delayed._t, start, stop) for start, stop in itertools.pairwise(bounds)]
    assert is_delayed(delayed._t)
    ms.reset_ps_context()
    full, expected_others = table(init, dtype)
    assert not is_delayed(full._t) and others == expected_others
    assert torch.equal(torch.cat(parts).view(torch.int8), full._t.view(torch.int8))


def test_states_of_a_large_table_are_delayed_too(role: Any) -> None:
    delayed, _ = table("normal", ms.float32)
    optimizer = nn.FTRL([delayed], initial_accum=0.25)
    states = [optimizer.moments_[0], optimizer.linear[0]]
    assert all(is_delayed(state._t) for state in (delayed, *states))
    assert [float(rows_between(state._t, 7, 9).sum()) for state in states] == [8.0, 0.0]


def test_small_values_and_other_processes_draw_at_once(role: Any) -> None:
    assert not is_delayed(nn.EmbeddingLookup(10, 4, target="DEVICE").embedding_table._t)
    ms.reset_ps_context()
    assert not is_delayed(nn.EmbeddingLookup(ROWS, 16, target="DEVICE").embedding_table._t)


@pytest.mark.parametrize(("dtype", "value"), [(torch.float16, float("nan")), (torch.int32, -(1 << 31)), (torch.bool, False)])
def test_values_on_servers_are_unreadable(dtype: torch.dtype, value: Any) -> None:
    t = unreadable(torch.ones(3, 4, dtype=dtype))
    assert t.shape == (3, 4) and (bool(t.isnan().all()) if value != value else bool((t == value).all()))
