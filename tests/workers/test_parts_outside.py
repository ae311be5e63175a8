"""A Parameter of which each process holds a part: what is seen, copied, written and read again of it outside of graphs is that part."""
from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from torchspore.errors import ValueElsewhere

HERE = Path(__file__).name
FULL = np.arange(72, dtype=np.float32).reshape(6, 12)


def _cut() -> tuple[Any, int]:
    """A net whose Parameter `one` is cut by columns among two processes, and the rank."""
    from mindspore.communication import get_rank, init
    from support.split_idioms import Net, X

    init()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    net = Net((1, 2))
    net.one.set_data(Tensor(FULL))
    net(Tensor(X))
    return net, get_rank()


def _error_of(call: Any) -> str:
    try:
        return f"no error: {call()}"
    except ValueElsewhere as error:
        return str(error)


def _seen(folder: str) -> dict[str, Any]:
    from mindspore.communication import comm_func

    net, rank = _cut()
    part = net.one
    unpickled = pickle.loads(pickle.dumps(net))
    kinds = {
        "asnumpy": part, "value": part.value(), "copy": copy.copy(part), "deep copy": copy.deepcopy(part),
        "pickled": pickle.loads(pickle.dumps(part)), "pickled value": pickle.loads(pickle.dumps(part.value(), 0)), "Tensor": Tensor(part),
        "Parameter": ms.Parameter(part, name="other"),
        "copied net": copy.deepcopy(net).one, "pickled net": unpickled.one,
    }
    arrays = {name: kind.asnumpy() for name, kind in kinds.items()}
    arrays |= {"array": np.array(part), "capsule": np.from_dlpack(part), "list": np.array(part.tolist(), np.float32)}
    Path(folder, f"{rank}.pickle").write_bytes(pickle.dumps(part))
    comm_func.barrier()
    other = Path(folder, f"{1 - rank}.pickle").read_bytes()
    saved = {}
    for name, thing in {**kinds, "net": net}.items():
        for is_full in (True, False):
            path = f"{folder}/{rank}.ckpt"
            ms.save_checkpoint(thing if name == "net" else {"one": thing}, path, integrated_save=is_full)
            saved[name, is_full] = ms.load_checkpoint(path)["one"].asnumpy()
    return {
        "shape": part.shape, "repr": repr(part), "repr of a value": repr(part.value()), "str": str(part.value()),
        "arrays": arrays, "saved": saved,
        "sums": [_error_of(lambda kind=kind: ops.sum(kind)) for kind in kinds.values()], "other": _error_of(lambda: pickle.loads(other)),
        "row": _error_of(lambda: part[0]), "equal": _error_of(lambda: bool((part == part).all())),
        "again": np.array_equal(unpickled(Tensor(FULL[:, :6])).asnumpy(), net(Tensor(FULL[:, :6])).asnumpy()),
    }


def _alone(folder: str) -> str:
    return _error_of(lambda: pickle.loads(Path(folder, "1.pickle").read_bytes()))


def test_a_part_is_seen_as_one(workers: Any, tmp_path: Path) -> None:
    hint = "hint: mindspore.save_checkpoint, called by all processes, writes full values; asnumpy() returns the part as an array."
    for rank, result in enumerate(workers(2, _seen, str(tmp_path))):
        part, location = FULL[:, rank * 6:rank * 6 + 6], f"part [0:6, {rank * 6}:{rank * 6 + 6}] of (6, 12)"
        assert result["shape"] == (6, 6) and result["again"]
        assert result["repr"] == f"Parameter (name=one, shape=(6, 6), dtype=Float32, requires_grad=True, {location})"
        assert result["repr of a value"].endswith(f"]], {location})") and result["str"] == f"{part} ({location})"
        for name, array in result["arrays"].items():
            np.testing.assert_array_equal(array, part, err_msg=name)
        for (name, is_full), array in result["saved"].items():
            np.testing.assert_array_equal(array, FULL if is_full else part, err_msg=name)
        for message in (*result["sums"], result["row"], result["equal"]):
            assert f"{HERE}:" in message and "of a Tensor of shape (6, 12), of which each process holds a part: expected" in message
        what = f"unpickling what process {1 - rank} of 2 held of a Tensor of shape (6, 12): expected the process that holds this part"
        assert f"{HERE}:" in result["other"] and what in result["other"] and result["other"].endswith(hint), result["other"]
    (message,) = workers(1, _alone, str(tmp_path))
    assert "unpickling what process 1 of 2 held" in message, message


def _staged(folder: str) -> dict[str, Any]:
    from mindspore.communication import get_rank, init

    init()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=2)
    net = nn.SequentialCell([nn.Dense(4, 3, has_bias=False), nn.Dense(3, 2, has_bias=False)])
    net[0].pipeline_stage, net[1].pipeline_stage = 0, 1
    net(Tensor(np.ones((2, 4), np.float32)))
    rank = get_rank()
    own, other = net[rank].weight, net[1 - rank].weight
    ms.save_checkpoint(net, f"{folder}/{rank}.ckpt", integrated_save=False)
    calls = other.asnumpy, lambda: pickle.dumps(other), lambda: np.from_dlpack(other), lambda: np.array(other)
    saved = sorted(ms.load_checkpoint(f"{folder}/{rank}.ckpt"))
    return {"own": own.asnumpy().shape, "repr": repr(other), "saved": saved, "said": [_error_of(call) for call in calls]}


def test_what_another_stage_holds_is_not_here(workers: Any, tmp_path: Path) -> None:
    for rank, result in enumerate(workers(2, _staged, str(tmp_path))):
        assert result["own"] == ((3, 4), (2, 3))[rank] and result["repr"].endswith(f"held by stage {1 - rank} of the pipeline)")
        assert result["saved"] == [f"{rank}.weight"]
        assert all(f"that stage {1 - rank} of the pipeline holds" in message for message in result["said"]), result["said"]
