"""`format='dcp'` of several processes: each writes and reads its parts, nothing is gathered, other numbers of processes go on."""
from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, train
from support.patches import replace
from support.resumed_jobs import STEPS, begun, values


def _counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    from torchspore.distributed.checkpoints.loading import Checkpoint

    read = Checkpoint.read
    sizes: list[int] = []

    def counted(self: Any, name: str, part: Any = None) -> Any:
        t = read(self, name, part)
        sizes.append(t.nbytes)
        return t

    monkeypatch.setattr(Checkpoint, "read", counted)
    return sizes


def _saved(mode: str, path: str, is_async: bool) -> dict[str, np.ndarray]:
    """Three steps and a save, in which any gather raises; then three more steps. The last values, through gathered files."""
    from torchspore.distributed.comm import collectives

    step, batches, _ = begun(mode)
    for at in range(3):
        step(*batches[at])
    with pytest.MonkeyPatch.context() as patch:
        for name in ("all_gather", "broadcast", "all_reduce"):
            patch.setattr(collectives, name, lambda *_: pytest.fail("a value was sent"))
        ms.save_checkpoint(step, path, format="dcp", async_save=is_async, append_dict={"step": 3})
    for at in range(3, STEPS):
        step(*batches[at])
    return values(step, str(Path(path).parent))


def _resumed(mode: str, path: str) -> tuple[dict[str, np.ndarray], int, int]:
    """Three steps from the checkpoint on. The last values, the bytes that were read, and those of the whole checkpoint."""
    step, batches, _ = begun(mode)
    if mode == "semi_auto_parallel":
        step.compile(*batches[0])
    with pytest.MonkeyPatch.context() as patch:
        sizes = _counted_reads(patch)
        loaded = ms.load_checkpoint(path, format="dcp")
        size = sum(value.nbytes for value in loaded.values())
        first = int(loaded.pop("step"))
        assert ms.load_param_into_net(step, loaded, strict_load=True)[0] == []
    for at in range(first, STEPS):
        step(*batches[at])
    return values(step, str(Path(path).parent)), sum(sizes), size


@pytest.mark.parametrize(("mode", "share"), [("semi_auto_parallel", 0.35), ("data_parallel", 0.8)])
def test_four_processes_save_and_four_two_and_one_go_on(mode: str, share: float, workers: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "n.dcp")
    finals = workers(4, _saved, mode, path, False)
    index = json.loads((Path(path) / "checkpoint.json").read_text())
    assert len(index["files"]) == 4
    for count in (4, 2, 1):
        for final, read, size in workers(count, _resumed, mode, path):
            assert count != 4 or read <= share * size, (read, size)          # each process reads its parts, and what all have
            for name, value in final.items():
                assert np.abs(value - finals[0][name]).max() <= (0 if count == 4 else 2e-6), name


def _rows_saved(path: str) -> list[float]:
    from mindspore.communication import get_rank, init

    init()
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, enable_parallel_optimizer=True,
                                 parallel_optimizer_config={"parallel_optimizer_threshold": 0, "optimizer_level": "level3"})
    ms.set_seed(1)
    net = nn.Dense(4, 6)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 0.1))
    x, y = Tensor(np.ones((2, 4), np.float32) * (1 + get_rank())), Tensor(np.ones((2, 6), np.float32))
    step(x, y)
    before = {parameter.name: parameter.asnumpy().copy() for parameter in net.get_parameters()}
    for name in ("a.dcp", "b.dcp"):
        ms.save_checkpoint(step, f"{path}.{name}", format="dcp", async_save=True)        # the second waits for the first
    step(x, y)
    loaded = ms.load_checkpoint(f"{path}.b.dcp", format="dcp")
    assert ms.load_param_into_net(step, loaded)[0] == []
    for parameter in net.get_parameters():
        np.testing.assert_array_equal(parameter.asnumpy(), before[parameter.name])
    return [float(parameter.asnumpy().sum()) for parameter in net.get_parameters()]


def test_weights_that_are_kept_by_rows_and_a_thread(workers: Any, tmp_path: Path) -> None:
    sums = workers(2, _rows_saved, str(tmp_path / "n"))
    assert sums[0] == sums[1]


def _callback(folder: str) -> list[str]:
    from mindspore.communication import init

    init()
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    net = nn.Dense(2, 1)
    model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    data = ms.dataset.NumpySlicesDataset((np.ones((8, 2), np.float32), np.ones((8, 1), np.float32)), shuffle=False).batch(2)
    config = train.CheckpointConfig(keep_checkpoint_max=2, format="dcp", remove_redundancy=True)
    model.train(1, data, callbacks=[train.ModelCheckpoint("m", folder, config)])
    return list(ms.load_checkpoint(f"{folder}/m-1_4.dcp", net, format="dcp"))


def test_model_checkpoint_of_two_processes_has_one_folder(workers: Any, tmp_path: Path) -> None:
    names = workers(2, _callback, str(tmp_path))
    assert names[0] == names[1] and "weight" in names[0]
    assert sorted(child.name for child in tmp_path.iterdir()) == ["m-1_3.dcp", "m-1_4.dcp"]


def _failing(path: str) -> tuple[str, int, str]:
    from mindspore.communication import get_rank, init

    from torchspore.distributed.checkpoints import saving

    init()
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel")
    net = {f"w{at}": Tensor(np.full(4, at, np.float32)) for at in range(4)}
    ms.save_checkpoint(net, path, format="dcp")

    def full(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device", "the/file")

    if get_rank() == 1:
        replace(saving, write_parts=full)
    try:
        ms.save_checkpoint({name: value * 2 for name, value in net.items()}, path, format="dcp")
    except OSError as error:
        loaded = ms.load_checkpoint(path, format="dcp")
        assert all(np.array_equal(loaded[name].asnumpy(), value.asnumpy()) for name, value in net.items())
        return str(error), error.errno or 0, str(sorted(child.name.partition("-")[0] for child in Path(path).iterdir()))
    return "", 0, ""


def test_a_full_disk_of_one_process_is_an_error_of_all(workers: Any, tmp_path: Path) -> None:
    texts = workers(2, _failing, str(tmp_path / "n.dcp"))
    assert all(number == errno.ENOSPC and "No space left" in text and "the/file" in text for text, number, _ in texts)
    assert "rank 1" in texts[0][0]
    assert texts[0][2] == "['checkpoint.json', 'save']"                      # rank 0 removes the files; rank 1 may look before that


def _alone(path: str) -> str:
    from mindspore.communication import get_rank, init

    init()
    try:
        if get_rank() == 0:
            ms.save_checkpoint(nn.Dense(2, 2), path, format="dcp")
        else:
            ms.ops.AllReduce()(Tensor(np.ones(2, np.float32)))
    except RuntimeError as error:
        return str(error)
    return ""


def test_one_process_that_saves_alone_is_an_error_of_all(workers: Any, tmp_path: Path) -> None:
    texts = workers(2, _alone, str(tmp_path / "n.dcp"))
    assert all("save_checkpoint(format='dcp'), which all processes must call" in text for text in texts), texts
    assert not (tmp_path / "n.dcp").exists()


def _differing(path: str) -> str:
    from mindspore.communication import get_rank, init

    init()
    try:
        ms.save_checkpoint({f"w{get_rank()}": Tensor(np.ones(2, np.float32))}, path, format="dcp")
    except RuntimeError as error:
        return str(error)
    return ""


def test_processes_that_save_other_names_are_refused(workers: Any, tmp_path: Path) -> None:
    assert all("rank 1 saves other names than rank 0" in text for text in workers(2, _differing, str(tmp_path / "n.dcp")))


