"""`Model` and its callbacks: losses, what is printed, what callbacks see, which files are written, what is refused."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, train
from parity.case import case

DATA = np.random.RandomState(1).randn(10, 2).astype(np.float32)
LABELS = np.random.RandomState(2).randint(0, 3, 10).astype(np.int32)
WEIGHT = np.random.RandomState(4).randn(3, 2).astype(np.float32)


def batches(size=4):
    return ds.NumpySlicesDataset((DATA, LABELS), ["x", "y"], shuffle=False).batch(size)


def model(**keywords):
    net = nn.Dense(2, 3, weight_init=ms.Tensor(WEIGHT), bias_init="zeros")
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return train.Model(net, loss, optimizer, metrics=keywords.pop("metrics", {"acc", "loss"}), **keywords)


class Scripted(train.Metric):
    """A metric that gives the values it was told to."""

    def __init__(self, values):
        super().__init__()
        self.values, self.place = list(values), -1

    def clear(self):
        self.place += 1

    def update(self, *inputs):
        pass

    def eval(self):
        return self.values[self.place]


def printed(call):
    """What a call prints: the numbers of losses rounded, times left out."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        call()
    text = re.sub(r"\d+\.\d+ ms", "T ms", out.getvalue())
    return re.sub(r"\d+\.\d{5,}", lambda number: f"{float(number[0]):.4f}", text).splitlines()


def kind(call):
    try:
        call()
    except Exception as error:
        return next(base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins")
    return None


@case(graph=True)
def lines_of_train():
    return {"lines": printed(lambda: model().train(2, batches(), callbacks=[train.LossMonitor(), train.TimeMonitor()]))}


@case(graph=True)
def lines_of_sink_mode():
    return {
        "lines": printed(
            lambda: model().train(2, batches(), callbacks=[train.LossMonitor(2), train.TimeMonitor(3)], dataset_sink_mode=True)
        )
    }


@case(graph=True)
def lines_of_fit():
    callbacks = [train.LossMonitor(), train.TimeMonitor(data_time=True)]
    return {
        "lines": [
            re.sub(r"data time: T ms", "data time", line)
            for line in printed(lambda: model().fit(3, batches(), batches(), [1, 3], callbacks))
        ]
    }


@case(graph=True, rtol=1e-5)
def values():
    trained = model()
    trained.train(3, batches())
    result = trained.eval(batches())
    return {"acc": np.asarray(result["acc"]), "loss": np.asarray(result["loss"]), "prediction": trained.predict(ms.Tensor(DATA)).asnumpy()}


@case()
def what_callbacks_see():
    seen = []

    def note(name):
        def method(self, run_context):
            now = run_context.original_args()
            seen.append([name, now.cur_step_num, now.get("cur_epoch_num"), now.batch_num, now.mode, type(now.get("net_outputs")).__name__])

        return method

    names = [
        f"on_{part}_{name}"
        for part in ("train", "eval")
        for name in ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")
    ]
    note_all = type("NoteAll", (train.Callback,), {name: note(name) for name in names})
    trained_model = model()
    trained_model.train(2, batches(5), callbacks=note_all())
    trained_model.eval(batches(5), callbacks=[note_all()])
    trained_model.fit(1, batches(5), batches(5), callbacks=[note_all()])
    return {"seen": seen}


@case()
def names_of_the_state():
    keys = {}

    class Keys(train.Callback):
        def on_train_begin(self, run_context):
            keys["begin"] = sorted(run_context.original_args())

        def on_train_end(self, run_context):
            keys["end"] = sorted(run_context.original_args())

        def on_eval_end(self, run_context):
            keys["eval"] = sorted(run_context.original_args())

    trained_model = model()
    trained_model.train(1, batches(), callbacks=[Keys()])
    trained_model.eval(batches(), callbacks=[Keys()])
    return keys


@case()
def old_methods():
    seen = []

    def note(name):
        return lambda self, run_context: seen.append(name)

    names = ["begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end"]
    old = type("Old", (train.Callback,), {name: note(name) for name in names})
    trained_model = model()
    trained_model.train(1, batches(), callbacks=[old()])
    trained_model.eval(batches(), callbacks=[old()])
    return {"seen": seen}


@case()
def stopping():
    seen = []

    class Stop(train.Callback):
        def on_train_step_end(self, run_context):
            seen.append(run_context.original_args().cur_step_num)
            run_context.request_stop()

    last = train.LambdaCallback(on_train_epoch_end=lambda run: seen.append("epoch end"), on_train_end=lambda run: seen.append("end"))
    model().train(3, batches(), callbacks=[Stop(), last])
    return {"seen": seen}


def followed(callback, scripted, name):
    trained_model = model(metrics={name: Scripted(scripted)})
    rates = []

    class Rates(train.Callback):
        def on_train_epoch_end(self, run_context):
            now = run_context.original_args()
            rates.append([now.cur_epoch_num, sorted(now.eval_results), round(float(now.optimizer.learning_rate.asnumpy()), 6)])

    lines = printed(lambda: trained_model.fit(len(scripted), batches(), batches(), callbacks=[callback, Rates()]))
    return {"lines": lines, "rates": rates}


FOLLOWERS = {
    "stop": (lambda: train.EarlyStopping("acc", patience=1, verbose=True, baseline=0.5), [0.4, 0.6, 0.5, 0.5]),
    "stop, restored": (
        lambda: train.EarlyStopping("acc", patience=2, min_delta=0.05, verbose=True, restore_best_weights=True),
        [0.4, 0.6, 0.62, 0.5],
    ),
    "stop at once": (lambda: train.EarlyStopping("acc", verbose=True), [0.4, 0.6]),
    "stop, min": (lambda: train.EarlyStopping("acc", mode="min", patience=2, verbose=True), [0.4, 0.6, 0.5, 0.3]),
    "stop, absent": (lambda: train.EarlyStopping("foo"), [0.4, 0.6]),
    "reduce": (lambda: train.ReduceLROnPlateau("acc", patience=2, factor=0.5, verbose=True), [0.1, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]),
    "reduce, cool": (lambda: train.ReduceLROnPlateau("acc", patience=1, cooldown=2, min_lr=0.02, verbose=True), [0.1] * 9),
}


@case(over=list(FOLLOWERS))
def follower(name):
    make, scripted = FOLLOWERS[name]
    return followed(make(), scripted, "acc")


@case()
def history():
    trained_model = model(metrics={"acc"})
    keeper = train.History()
    trained_model.fit(2, batches(), batches(), callbacks=[keeper])
    return {
        "epoch": keeper.epoch,
        "names": sorted(keeper.history),
        "acc": keeper.history["acc"],
        "outputs": len(keeper.history["net_output"]),
    }


@case()
def scheduler():
    seen = []
    trained_model = model()

    def half(rate, step):
        seen.append([rate, step])
        return rate * 0.5

    trained_model.train(1, batches(), callbacks=[train.LearningRateScheduler(half)])
    return {"seen": seen}


CONFIGS = {
    "every step": {},
    "every second, keep two": {"save_checkpoint_steps": 2, "keep_checkpoint_max": 2},
    "at the end": {"save_checkpoint_steps": 100},
    "every third": {"save_checkpoint_steps": 3},
}


@case()
def files():
    with tempfile.TemporaryDirectory() as folder:
        trained_model, results = model(), {}
        for name, keywords in CONFIGS.items():
            saver = train.ModelCheckpoint("net", folder, train.CheckpointConfig(**keywords))
            trained_model.train(2, batches(), callbacks=[saver])
            results[name] = [
                sorted(file for file in os.listdir(folder) if file.endswith(".ckpt")),
                os.path.basename(saver.latest_ckpt_file_name),
            ]
        info = train.ModelCheckpoint("info", folder, train.CheckpointConfig(append_info=["epoch_num", "step_num", {"k": 1}]))
        trained_model.train(1, batches(), callbacks=[info])
        loaded = ms.load_checkpoint(info.latest_ckpt_file_name)
        sink = train.ModelCheckpoint("sink", folder, train.CheckpointConfig(save_checkpoint_steps=2))
        trained_model.train(2, batches(), callbacks=[sink], dataset_sink_mode=True)
        results["sink"] = sorted(file for file in os.listdir(folder) if file.startswith("sink"))
        mode = oct(os.stat(info.latest_ckpt_file_name).st_mode & 0o777)
        return {
            "files": results,
            "keys": list(loaded),
            "info": [int(loaded[name].asnumpy()) for name in ("epoch_num", "step_num", "k")],
            "mode": mode,
        }


@case()
def policies():
    return {
        "default": train.CheckpointConfig().get_checkpoint_policy(),
        "seconds": train.CheckpointConfig(0, 30, 0, 5).get_checkpoint_policy(),
    }


REFUSED = {
    "epoch 0": lambda: model().train(0, batches()),
    "epoch text": lambda: model().train("a", batches()),
    "callback": lambda: model().train(1, batches(), callbacks=[3]),
    "sink 1": lambda: model().train(1, batches(), dataset_sink_mode=1),
    "sink size 0": lambda: model().train(1, batches(), sink_size=0),
    "initial epoch": lambda: model().train(3, batches(), initial_epoch=3),
    "network": lambda: train.Model(3),
    "optimizer": lambda: train.Model(nn.Dense(2, 3), nn.MSELoss(), 3),
    "metrics text": lambda: train.Model(nn.Dense(2, 3), metrics="acc"),
    "metric unknown": lambda: train.Model(nn.Dense(2, 3), nn.MSELoss(), metrics={"zzz"}),
    "metrics alone": lambda: train.Model(nn.Dense(2, 3), metrics={"acc"}),
    "amp": lambda: model(amp_level="O9"),
    "boost": lambda: model(boost_level="zz"),
    "keyword": lambda: model(foo=3),
    "loss scale": lambda: model(loss_scale_manager=3),
    "eval_indexes": lambda: model(eval_network=nn.Dense(2, 3), eval_indexes=[0, 1]),
    "eval without metrics": lambda: train.Model(nn.Dense(2, 3)).eval(batches()),
    "eval callbacks": lambda: model().eval(batches(), callbacks=3),
    "fit without metrics": lambda: model(metrics=None).fit(1, batches(), batches()),
    "three columns": lambda: model().train(1, ds.NumpySlicesDataset((DATA, DATA, LABELS)).batch(2)),
    "no rows": lambda: model().train(1, batches().skip(10)),
    "predict array": lambda: model().predict(DATA),
    "infer": lambda: model().infer_train_layout(batches()),
    "prefix": lambda: train.ModelCheckpoint("a/b"),
    "prefix number": lambda: train.ModelCheckpoint(3),
    "config": lambda: train.ModelCheckpoint(config=3),
    "steps -1": lambda: train.CheckpointConfig(save_checkpoint_steps=-1),
    "keep text": lambda: train.CheckpointConfig(keep_checkpoint_max="a"),
    "append": lambda: train.CheckpointConfig(append_info=["x"]),
    "saved network": lambda: train.CheckpointConfig(saved_network=3),
    "monitor mode": lambda: train.EarlyStopping(mode="x"),
    "patience": lambda: train.EarlyStopping(patience=-1),
    "monitor": lambda: train.EarlyStopping(monitor=3),
    "factor": lambda: train.ReduceLROnPlateau(factor=2.0),
    "print times": lambda: train.LossMonitor(-1),
    "print text": lambda: train.LossMonitor("a"),
    "scale 0": lambda: train.FixedLossScaleManager(0),
    "dynamic 0": lambda: train.DynamicLossScaleManager(0),
    "context": lambda: train.RunContext(3),
    "not finite": lambda: train.Model(nn.Dense(2, 1), nn.MSELoss(), nn.SGD(nn.Dense(2, 1).trainable_params())).train(
        1,
        ds.NumpySlicesDataset((np.full((2, 2), np.nan, np.float32), np.ones((2, 1), np.float32))).batch(2),
        callbacks=[train.LossMonitor()],
    ),
}


@case(over=list(REFUSED))
def refused(name):
    return {"error": kind(REFUSED[name])}


@case()
def loss_scale_managers():
    dynamic = train.DynamicLossScaleManager(8, 2, 2)
    scales = [float(dynamic.get_loss_scale())]
    for overflow in (False, False, True, True):
        dynamic.update_loss_scale(overflow)
        scales.append(float(dynamic.get_loss_scale()))
    fixed = train.FixedLossScaleManager()
    return {
        "scales": scales,
        "fixed": fixed.get_loss_scale(),
        "cells": [
            type(dynamic.get_update_cell()).__name__,
            type(fixed.get_update_cell()).__name__,
            type(train.FixedLossScaleManager(2.0, False).get_update_cell()).__name__,
        ],
    }


@case(graph=True)
def scaled_steps():
    net = nn.Dense(2, 3, weight_init=ms.Tensor(WEIGHT), bias_init="zeros")
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.SGD(net.trainable_params(), 0.1), sens=2.0)
    losses = [step(ms.Tensor(DATA), ms.Tensor(LABELS)).asnumpy() for _ in range(3)]
    return {"losses": np.array(losses), "weight": net.weight.asnumpy(), "text": repr(nn.WithEvalCell(net, loss))}
