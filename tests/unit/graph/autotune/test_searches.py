"""The searches on made-up costs: they find what is fast, try no way twice, share what they measured, and stop when the time is up."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from torchspore.graph.autotune import searches
from torchspore.graph.autotune.searches import Gene, Plan, Trials

GENES = [
    Gene("back end", ("operators", "kernels", "broken")), Gene("threads", (4, 2, 1)), Gene("layout", ("as it is", "channels last")),
    Gene("limit", (200, 40, 10, 5), ("back end", "kernels")), Gene("chunk", (512, 4096, 65536), ("back end", "kernels")),
]
BEST = {"back end": "kernels", "threads": 2, "limit": 40, "chunk": 4096, "layout": "channels last"}


class Cost:
    """Seconds of a plan: least at BEST; counts what is asked."""

    def __init__(self) -> None:
        self.asked: list[Plan] = []

    def __call__(self, plan: Plan) -> float | None:
        self.asked.append(dict(plan))
        if plan["back end"] == "broken":
            return None
        counted = [name for name in BEST if name not in ("limit", "chunk") or plan["back end"] == "kernels"]
        return 1.0 + sum(plan[name] != BEST[name] for name in counted) + 2.0 * (plan["back end"] == "operators")


def trials(cost: Callable[[Plan], float | None], seconds: float = 10.0, seed: int = 0) -> Trials:
    return Trials(GENES, cost, seconds, seed)


@pytest.mark.parametrize("search", [searches.search_by_bandit, searches.search_by_genes])
@pytest.mark.parametrize("seed", range(5))
def test_a_search_comes_near_the_best_and_tries_no_way_twice(search: Any, seed: int) -> None:
    cost = Cost()
    trial = trials(cost, seed=seed)
    search(trial)
    best = trial.ranked()[0]
    assert trial.seconds[trial.effective_genes(best)] <= 2.0                  # at most one gene away; the untuned form costs 6
    genes = [trial.effective_genes(plan) for plan in cost.asked]
    assert len(genes) == len(set(genes)) < trial.size() == 84


@pytest.mark.parametrize("search", [searches.search_by_bandit, searches.search_by_genes])
def test_a_seed_gives_the_same_search(search: Any) -> None:
    costs = [Cost(), Cost()]
    for cost in costs:
        search(trials(cost, seed=3))
    assert costs[0].asked == costs[1].asked and costs[0].asked[0] == {gene.name: gene.values[0] for gene in GENES}


BANDIT, GENES_ = searches.search_by_bandit, searches.search_by_genes


@pytest.mark.parametrize("order", [(BANDIT, GENES_), (GENES_, BANDIT)])
def test_the_second_search_begins_where_the_first_ended(order: Any) -> None:
    cost = Cost()
    trial = trials(cost)
    order[0](trial)
    first = len(cost.asked)
    order[1](trial)
    genes = [trial.effective_genes(plan) for plan in cost.asked]
    assert len(genes) == len(set(genes)) and trial.seconds[trial.effective_genes(trial.ranked()[0])] == 1.0
    assert cost.asked[first] != trial.first()


@pytest.mark.parametrize("search", [searches.search_by_bandit, searches.search_by_genes])
def test_the_budget_ends_a_search_and_the_untuned_form_is_always_measured(search: Any) -> None:
    def slow(plan: Plan) -> float:
        time.sleep(0.02)
        return 1.0

    trial = trials(slow, seconds=0.1)
    started = time.monotonic()
    search(trial)
    assert time.monotonic() - started < 1.0 and 1 <= len(trial.seconds) < 12 and trial.effective_genes(trial.base) in trial.seconds
    trial = trials(slow, seconds=0.0)
    search(trial)
    assert len(trial.seconds) <= 1


def test_a_search_begins_with_single_changes_and_the_cheap_ones_among_them() -> None:
    cost = Cost()
    trial = Trials([Gene("back end", ("operators", "kernels", "broken"), dear=("kernels",)), *GENES[1:]], cost, 10.0)
    trial.begin()
    base = trial.first()
    assert cost.asked == [base, *[{**base, **change} for change in (
        {"back end": "broken"}, {"threads": 2}, {"threads": 1}, {"layout": "channels last"}, {"back end": "kernels"})]]


def test_genes_that_mean_nothing_with_other_genes_make_no_new_way() -> None:
    trial = trials(Cost())
    plan = trial.first()
    effective = trial.effective_genes(plan)
    assert effective == trial.effective_genes({**plan, "limit": 5, "chunk": 65536}) != trial.effective_genes({**plan, "threads": 1})
    alone = Trials([Gene("back end", ("operators",)), Gene("limit", (1, 2), ("back end", "kernels")), Gene("threads", (2, 1))], Cost(), 1.0)
    assert [gene.name for gene in alone.genes] == ["threads"] and alone.size() == 2
