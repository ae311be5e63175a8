"""`remove_redundancy`: what several processes hold alike is in the file of one of them, and the others get it when they load."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, train


def _trained(folder: str, is_split: bool, is_full: bool) -> dict[str, Any]:
    from mindspore.communication import get_rank, init
    from support.split_idioms import Net, X, Y

    init()
    rank = get_rank()
    ms.set_context(mode=ms.GRAPH_MODE)
    mode = "semi_auto_parallel" if is_split else "data_parallel"
    ms.set_auto_parallel_context(parallel_mode=mode, dataset_strategy="full_batch" if is_split else "data_parallel", gradients_mean=True)

    def model() -> Any:
        net = Net((1, 2) if is_split else None)
        return train.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.01))

    first, other = model(), model()
    data = ms.dataset.NumpySlicesDataset((X, Y), shuffle=False).batch(8)
    config = train.CheckpointConfig(remove_redundancy=True, integrated_save=is_full, append_info=["epoch_num"])
    first.train(2, data, callbacks=[train.ModelCheckpoint("m", f"{folder}/{rank}", config)])
    other.train(1, data)
    before = {p.name: p.asnumpy().copy() for p in other.train_network.get_parameters()}
    loaded = ms.load_checkpoint(f"{folder}/{rank}/m-2_1.ckpt")
    names = sorted(loaded)
    absent, _ = ms.load_param_into_net(other.train_network, loaded, remove_redundancy=True)
    weights = {p.name: p for p in first.train_network.get_parameters()}
    equal = [np.array_equal(p.asnumpy(), weights[p.name].asnumpy()) for p in other.train_network.get_parameters()]
    differed = [not np.array_equal(before[name], p.asnumpy()) for name, p in weights.items()]
    if rank:
        weights["learning_rate"].set_data(Tensor(0.5))
    ms.parallel.parameter_broadcast(first.train_network, dict.fromkeys(weights), rank)
    return {"names": names, "absent": absent, "same": all(equal), "differed": sum(differed),
            "rate": float(weights["learning_rate"].asnumpy())}


@pytest.mark.parametrize(("is_split", "is_full"), [
    (True, False), pytest.param(False, True, marks=pytest.mark.slow), pytest.param(True, True, marks=pytest.mark.slow),
])
def test_files_without_redundancy_give_all_of_it_back(is_split: bool, is_full: bool, workers: Any, tmp_path: Path) -> None:
    results = workers(2, _trained, str(tmp_path), is_split, is_full)
    assert all(result["absent"] == [] and result["same"] and result["differed"] > 4 for result in results), results
    names = [set(result["names"]) - {"epoch_num"} for result in results]
    assert all("epoch_num" in result["names"] for result in results)
    every = {"beta1_power", "beta2_power", "global_step", "learning_rate", *(f"{kind}{name}" for kind in ("", "moment1.", "moment2.")
                                                                            for name in ("one", "other"))}
    cut = {name for name in every if name.rpartition(".")[2] in ("one", "other")} if is_split else set[str]()
    assert names[0] | names[1] == every and names[0] & names[1] == cut      # of what is cut each holds a part that nobody else has
    assert abs(len(names[0]) - len(names[1])) <= 1
    assert len({result["rate"] for result in results}) == 1
