"""Every message of the training functions that a user can meet, whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import nn, train


def batches() -> ds.Dataset:
    return ds.NumpySlicesDataset((np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)), ["x", "y"]).batch(2)


def model(**keywords: Any) -> train.Model:
    net = nn.Dense(2, 1)
    return train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), **keywords)


MESSAGES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "epoch": (lambda: model().train(0, batches()), ValueError, "Model.train(epoch=0): expected an int from 1."),
    "dataset": (
        lambda: model().train(1, [1]),
        TypeError,
        "Model.train(train_dataset=[1]): expected a Dataset, got list.\n\nhint: wrap it: GeneratorDataset(...).",
    ),
    "callbacks": (lambda: model().train(1, batches(), 3), TypeError, "callbacks=3: expected a Callback or a list of them, got int."),
    "initial epoch": (
        lambda: model().train(2, batches(), initial_epoch=2),
        ValueError,
        "Model.train(epoch=2, initial_epoch=2): expected an initial_epoch below epoch.",
    ),
    "no rows": (
        lambda: model().train(1, batches().skip(9)),
        ValueError,
        "Model.train(train_dataset=...): expected a dataset with rows; this one has none.",
    ),
    "columns": (
        lambda: model().train(1, ds.NumpySlicesDataset((np.ones((2, 2)), np.ones(2), np.ones(2))).batch(2)),
        ValueError,
        "Model with loss_fn: train_dataset has 3 columns: expected two, data and label.\n\n"
        "hint: join the columns in a map, or leave loss_fn out and let the network compute the loss.",
    ),
    "metrics": (
        lambda: model(metrics="acc"),
        TypeError,
        "metrics='acc': expected None, a set or a dict, got str.\n\nhint: write metrics={'accuracy'}.",
    ),
    "no metrics": (
        lambda: model().eval(batches()),
        ValueError,
        "Model.eval of a Model without metrics: expected metrics.\n\nhint: write Model(..., metrics={'accuracy'}).",
    ),
    "metrics alone": (
        lambda: train.Model(nn.Dense(2, 1), metrics={"acc"}),
        ValueError,
        "Model(metrics=...) without eval_network or loss_fn: expected one of the two, to evaluate with.\n\n"
        "hint: write Model(network, loss_fn, metrics=...).",
    ),
    "network": (lambda: train.Model(3), TypeError, "Model(network=3): expected a Cell, got int."),
    "level": (lambda: model(amp_level="O9"), ValueError, "Model(amp_level='O9'): expected 'O0', 'O1', 'O2', 'O3' or 'auto'."),
    "cast": (
        lambda: train.build_train_network(nn.Dense(2, 1), None, cast_model_type=3),
        ValueError,
        "build_train_network(cast_model_type=3): expected 'mindspore.float16' or 'mindspore.float32'.",
    ),
    "predict": (
        lambda: model().predict(np.ones((1, 2))),
        TypeError,
        "Model.predict of ndarray: expected Tensors.\n\nhint: write mindspore.Tensor(array).",
    ),
    "not finite": (
        lambda: train.LossMonitor().on_train_step_end(
            train.RunContext(
                train.callback.InternalCallbackParam(cur_epoch_num=1, cur_step_num=2, batch_num=3, net_outputs=ms.Tensor(np.nan))
            )
        ),
        ValueError,
        "epoch: 1 step: 2, loss is nan: expected a finite loss; the training ends.\n\nhint: a smaller learning rate, or data without NaN.",
    ),
    "prefix": (
        lambda: train.ModelCheckpoint("a/b"),
        ValueError,
        "ModelCheckpoint(prefix='a/b'): expected a name without '/', or a function of cb_params.",
    ),
    "steps": (
        lambda: train.CheckpointConfig(save_checkpoint_steps=-1),
        ValueError,
        "CheckpointConfig(save_checkpoint_steps=-1): expected an int from 0.",
    ),
    "append": (
        lambda: train.CheckpointConfig(append_info=["x"]),
        ValueError,
        "CheckpointConfig(append_info=['x']): expected 'epoch_num', 'step_num' or a dict.",
    ),
    "save": (lambda: ms.save_checkpoint(3, "x"), TypeError, "save_checkpoint(3, ...): expected a Cell, a list or a dict, got int."),
    "save format": (
        lambda: ms.save_checkpoint({}, "x", format="z"),
        ValueError,
        "save_checkpoint(format='z'): expected 'ckpt', 'safetensors' or 'dcp'.",
    ),
    "save folder": (
        lambda: ms.save_checkpoint({}, "/nowhere/x.ckpt"),
        FileNotFoundError,
        "save_checkpoint('/nowhere/x.ckpt'): expected a folder that exists: /nowhere.",
    ),
    "save append": (
        lambda: ms.save_checkpoint({}, "x", append_dict={"a": [1]}),
        TypeError,
        "save_checkpoint(append_dict={'a': [1]}): expected names with numbers, bools, text or Tensors.",
    ),
    "save encrypted": (
        lambda: ms.save_checkpoint({}, "x", enc_key=b"1"),
        ValueError,
        "save_checkpoint(enc_key=...) of 1 bytes: expected 16, 24 or 32 bytes.",
    ),
    "load suffix": (
        lambda: ms.load_checkpoint("a.safetensors"),
        ValueError,
        "load_checkpoint('a.safetensors', format='ckpt'): expected a file name that ends with .ckpt.\n\nhint: write format='safetensors'.",
    ),
    "load net": (lambda: ms.load_param_into_net(3, {}), TypeError, "load_param_into_net(3, ...): expected a Cell, got int."),
    "load Tensor": (
        lambda: ms.load_param_into_net(nn.Dense(1, 1), {"weight": 3}),
        TypeError,
        "load_param_into_net(..., {'weight': int}): expected names with Parameters.\n\nhint: write mindspore.Parameter(tensor, name=...).",
    ),
    "step": (lambda: nn.TrainOneStepCell(3, None), TypeError, "TrainOneStepCell(network=3): expected a Cell, got int."),
    "step optimizer": (
        lambda: nn.TrainOneStepCell(nn.Dense(1, 1), 3),
        TypeError,
        "TrainOneStepCell(optimizer=3): expected an optimizer, which has parameters.",
    ),
    "scale": (
        lambda: nn.TrainOneStepWithLossScaleCell(nn.Dense(1, 1), nn.SGD(nn.Dense(1, 1).trainable_params()), 3),
        TypeError,
        "TrainOneStepWithLossScaleCell(scale_sense=3): expected a Cell or a Tensor, got int.",
    ),
    "helper": (
        lambda: train.DatasetHelper(3), TypeError,
        "DatasetHelper(dataset=3): expected a Dataset, got int.\n\nhint: wrap it: GeneratorDataset(...).",
    ),
    "sink": (lambda: train.data_sink(3, batches()), TypeError, "data_sink(3, ...): expected a function, got int."),
    "monitor": (lambda: train.EarlyStopping(mode="x"), ValueError, "EarlyStopping(mode='x'): expected 'auto', 'min' or 'max'."),
    "no context": (
        lambda: train.LossMonitor().on_train_step_end({"cur_step_num": 1}), TypeError,
        "LossMonitor: run_context={'cur_step_num': 1}: expected a RunContext, got dict.",
    ),
    "context of a plain dict": (
        lambda: train.TimeMonitor().on_train_epoch_end(train.RunContext({"epoch_num": 1})), AttributeError,
        "cb_params.batch_num: expected one of epoch_num.",
    ),
    "context": (lambda: train.RunContext(3), TypeError, "RunContext(3): expected a dict, got int."),
    "dice": (lambda: train.Dice(-1), ValueError, "Dice(smooth=-1): expected a number from 0."),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    call, kind, text = MESSAGES[name]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text


def test_unknown_metric() -> None:
    with pytest.raises(KeyError) as caught:
        train.get_metric_fn("accurracy")
    assert caught.value.args[0].endswith("hint: write 'accuracy'.")


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    ms.save_checkpoint({"w": ms.Tensor([1.0])}, str(tmp_path / "lenet-1_10.ckpt"))
    with pytest.raises(ValueError) as caught:
        ms.load_checkpoint(str(tmp_path / "lenet-1_1.ckpt"))
    missing = tmp_path / "lenet-1_1.ckpt"
    assert (
        str(caught.value)
        == f"load_checkpoint({str(missing)!r}): expected a file that exists: {missing}.\n\nhint: there is 'lenet-1_10.ckpt'."
    )
