"""What two processes exchange: the numbers, dtypes and kinds of results that real MindSpore's two processes gave, and both modes alike."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORD = json.loads((Path(__file__).resolve().parents[1] / "parity" / "communication.json").read_text())
WRONG = {"broadcast": "MindSpore's CPU broadcasts the first of several Tensors; the others are memory that nobody wrote"}
"""Where real MindSpore gives what it should not."""


def _cases() -> Any:
    import sys

    import mindspore as ms

    root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root / "tests"), str(root / "tools")]
    from mindspore import communication
    from recorders import communication as recorder

    ms.set_device("CPU")
    communication.init()
    return recorder.outcomes(set())


def test_numbers_are_mindspores(workers: Any) -> None:
    results = workers(2, _cases)
    assert results[0].keys() == RECORD.keys()
    compared = 0
    for name, recorded in RECORD.items():
        if name in WRONG:
            continue
        for rank in range(2):
            if not isinstance(recorded[rank], dict) or "error" not in recorded[rank]:
                assert results[rank][name] == recorded[rank], (name, rank)
                compared += 1
    print([(n, f[n]) for f in results[:1] for n in f if isinstance(f[n], dict) and "error" in f[n]])
    assert compared > 40
    for name in (name for name in RECORD if name.endswith(".graph")):
        plain = name.removesuffix(".graph")
        assert [rank[name] for rank in results] == [rank[plain] for rank in results], name


REFUSED = {
    "rank_out_of_range": "ValueError", "no_such_group": "ValueError", "all_reduce_bool": "TypeError", "create_group_beyond": "ValueError",
    "reduce_scatter_uneven_rows": "ValueError", "create_group_twice_the_same": "ValueError", "destroy_world": "ValueError",
    "functional_all_to_all": None,
}
