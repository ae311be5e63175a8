"""MindCV 0.3.0: every model, its losses, optimizers, schedules and transforms, and a training and validation on a folder of pictures."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PACKAGE = "mindcv==0.3.0"
NEEDS = ("tqdm", "pyyaml")
FULL = ((re.compile("inception|xception"), 299), (re.compile("_384"), 384), (re.compile("halonet|swinv2|_256"), 256))
"""Lengths of pictures other than 224, for models that accept only these."""
HALF = re.compile("volo")
"""Models that compute only in float16 (their constants have this dtype); their recipes set it by amp_level."""
SMALL = 64
LIGHT = re.compile(r"tiny|xxs|xxsmall|nano|pico|small|_s\d|_s$|_s_|xs|18|26|b0|b1|_050|_0x5|c16|_1_5x|_002")
"""Matches the names of the smaller members of a family."""
POLICIES = ("randaug-m7-mstd0.5", "autoaug", "autoaugr-mstd0.5", "3a", "trivialaugwide", "augmix-m3-w3")

Row = tuple[str, str, Callable[[], dict[str, Any] | None]]


def rows(options: dict[str, Any]) -> Iterator[Row]:
    """Yield (name, group, function to run) of each row."""
    from mindcv.models import list_models, model_entrypoint  # type: ignore[import-not-found]

    families: dict[tuple[str, str], list[str]] = {}
    for name in list_models():
        kind = re.match(r"[a-zA-Z]+\d?[a-zA-Z]*(_v\d|_[xy]_|_lite)?", name)
        families.setdefault((model_entrypoint(name).__module__, kind.group(0) if kind else name), []).append(name)
    light = [next((name for name in named if LIGHT.search(name)), named[0]) for named in families.values()]
    for name in light if options["families"] else list_models():
        yield name, "models", lambda name=name: _model(name, options)  # type: ignore[misc]
    if not options["ours"]:
        return
    for name in ("ce", "bce", "asl_single_label", "asl_multi_label", "jsd"):
        yield f"loss {name}", "losses", lambda name=name: _loss(name)  # type: ignore[misc]
    for name in ("sgd", "momentum", "nesterov", "adam", "adamw", "lion", "nadam", "adan", "rmsprop", "adagrad", "lamb"):
        yield f"optimizer {name}", "optimizers", lambda name=name: _optimizer(name)  # type: ignore[misc]
    for name in (
        "cosine_decay", "one_cycle", "cyclic", "exponential_decay", "polynomial_decay", "step_decay", "multi_step_decay", "constant",
    ):
        yield f"schedule {name}", "schedules", lambda name=name: _schedule(name)  # type: ignore[misc]
    for name in ("", *POLICIES):
        yield f"transforms {name or 'plain'}", "transforms", lambda name=name: _transforms(name, options["work"])  # type: ignore[misc]
    for mode in (1, 0):
        yield f"train and validate, mode {mode}", "programs", lambda mode=mode: _train(mode, options["work"])  # type: ignore[misc]


def _sizes(name: str) -> list[int]:
    full = next((length for pattern, length in FULL if pattern.search(name)), 224)
    return [SMALL, full]


def _model(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Build the model and run a forward and backward pass on the smallest pictures that it accepts. MindSpore loads our weights."""
    import mindspore as ms
    import numpy as np
    from mindcv.models import create_model  # type: ignore[import-not-found]

    stem = options["work"] / name
    ms.set_seed(1)
    net = create_model(name, num_classes=10)
    if HALF.search(name):
        net.to_float(ms.float16)
    net.set_train(False)
    if not options["ours"]:
        ms.load_checkpoint(f"{stem}.ckpt", net)
        expected = np.load(f"{stem}.npz")
        logits = net(ms.Tensor(expected["x"])).asnumpy()
        Path(f"{stem}.ckpt").unlink()
        return {"apart": float(np.abs(expected["logits"] - logits).max() / np.abs(logits).max())}
    for size in _sizes(name):
        x = np.random.RandomState(0).rand(2, 3, size, size).astype(np.float32)
        try:
            logits = net(ms.Tensor(x))
            break
        except TimeoutError:
            raise
        except Exception:
            if size != SMALL:
                raise
    if options["families"]:
        ms.save_checkpoint(net, f"{stem}.ckpt")
        np.savez(f"{stem}.npz", x=x, logits=logits.asnumpy())
    net.set_train(True)
    loss = ms.nn.CrossEntropyLoss()

    def forward(pictures: Any, labels: Any) -> Any:
        out = net(pictures)
        return sum(loss(o, labels) for o in (out if isinstance(out, tuple) else (out,)))

    value, gradients = ms.value_and_grad(forward, None, net.trainable_params())(ms.Tensor(x), ms.Tensor([1, 2], ms.int32))
    if not np.isfinite(value.asnumpy()) or not all(np.isfinite(g.asnumpy()).all() for g in gradients):
        raise ValueError("the loss or a gradient is not finite")
    return {"size": size}


def _loss(name: str) -> None:
    import mindspore as ms
    import numpy as np
    from mindcv.loss import create_loss  # type: ignore[import-not-found]

    logits = ms.Tensor(np.random.RandomState(0).randn(6, 5).astype(np.float32))
    dense = name in ("bce", "asl_multi_label")
    labels = ms.Tensor(np.eye(5, dtype=np.float32)[[0, 1, 2, 3, 4, 0]]) if dense else ms.Tensor([0, 1, 2, 3, 4, 0], ms.int32)
    loss = create_loss(name, label_smoothing=0.1)
    gradient = ms.grad(lambda x: loss(x, labels).sum())(logits)
    if not np.isfinite(gradient.asnumpy()).all() or not np.abs(gradient.asnumpy()).max() > 0:
        raise ValueError("the gradient is zero or not finite")


def _optimizer(name: str) -> None:
    import mindspore as ms
    import numpy as np
    from mindcv.optim import create_optimizer  # type: ignore[import-not-found]

    ms.set_seed(1)
    net = ms.nn.SequentialCell(ms.nn.Dense(4, 8), ms.nn.ReLU(), ms.nn.Dense(8, 1))
    optimizer = create_optimizer(net.trainable_params(), opt=name, lr=0.01, weight_decay=1e-4, weight_decay_filter="norm_and_bias")
    x, loss = ms.Tensor(np.random.RandomState(0).randn(16, 4).astype(np.float32)), ms.nn.MSELoss()
    step = ms.nn.TrainOneStepCell(ms.nn.WithLossCell(net, loss), optimizer)
    losses = [float(step(x, x.sum(1, keepdims=True))) for _ in range(20)]
    if not losses[-1] < losses[0]:
        raise ValueError(f"the loss did not fall: {losses[0]:.3f}, {losses[-1]:.3f}")


def _schedule(name: str) -> None:
    from mindcv.scheduler import create_scheduler  # type: ignore[import-not-found]

    plain = name in ("one_cycle", "cyclic")
    rates = create_scheduler(
        10, name, lr=0.1, warmup_epochs=0 if plain else 1, decay_epochs=5, num_epochs=6, milestones=[2, 4] if "multi" in name else None,
    )
    if len(list(rates)) < 60:
        raise ValueError(f"{len(list(rates))} rates for 60 steps")


def pictures(folder: Path, classes: int = 2, count: int = 8) -> Path:
    """Write a folder of JPEG pictures, `train` and `val`, each with a folder for each class, unless it exists. Return its path."""
    import numpy as np
    from PIL import Image

    drawn = np.random.RandomState(0)
    for part in ("train", "val"):
        for label in range(classes):
            class_folder = folder / "pictures" / part / f"class{label}"
            if class_folder.exists():
                continue
            class_folder.mkdir(parents=True)
            for number in range(count):
                values = drawn.randint(0, 120, (72, 80, 3)) + np.array([120 * label, 0, 120 * (1 - label)])
                Image.fromarray(values.astype(np.uint8)).save(class_folder / f"{number}.jpg")
    return folder / "pictures"


def _loader(folder: Path, part: str, policy: str = "") -> Any:
    from mindcv.data import create_dataset, create_loader, create_transforms  # type: ignore[import-not-found]

    is_training = part == "train"
    source = create_dataset(name="ImageNet", root=str(pictures(folder)), split=part, shuffle=is_training, num_parallel_workers=1)
    augmentation = {"auto_augment": policy or None, "re_prob": 0.5} if is_training else {}
    transforms = create_transforms("imagenet", image_resize=64, is_training=is_training, **augmentation)
    return create_loader(
        source, batch_size=4, drop_remainder=is_training, is_training=is_training, transform=transforms, num_parallel_workers=1,
        num_classes=2,
    )


def _transforms(policy: str, folder: Path) -> None:
    import numpy as np

    for batch in _loader(folder, "train", policy).create_tuple_iterator(output_numpy=True, num_epochs=1):
        if batch[0].shape[-3:] != (3, 64, 64) or not np.isfinite(batch[0]).all():
            raise ValueError(f"a batch of shape {batch[0].shape}")


def _train(mode: int, folder: Path) -> dict[str, Any]:
    """Train and validate as train.py and validate.py of MindCV's repository do (no archive contains them), with MindCV's functions."""
    import mindspore as ms
    from mindcv.loss import create_loss  # type: ignore[import-not-found]
    from mindcv.models import create_model  # type: ignore[import-not-found]
    from mindcv.optim import create_optimizer  # type: ignore[import-not-found]
    from mindcv.scheduler import create_scheduler  # type: ignore[import-not-found]
    from mindcv.utils import StateMonitor, create_trainer  # type: ignore[import-not-found]

    ms.set_context(mode=mode)
    try:
        ms.set_seed(1)
        training, checking = _loader(folder, "train"), _loader(folder, "val")
        steps = training.get_dataset_size()
        net = create_model("resnet18", num_classes=2)
        rates = create_scheduler(steps, "cosine_decay", lr=0.01, warmup_epochs=1, decay_epochs=2, num_epochs=3)
        optimizer = create_optimizer(net, opt="momentum", lr=rates, weight_decay=1e-4, loss_scale=128, loss_scale_type="fixed")
        loss = create_loss("ce", label_smoothing=0.1)
        metrics = {"Top_1_Accuracy": ms.train.Top1CategoricalAccuracy()}
        trainer = create_trainer(net, loss, optimizer, metrics, amp_level="O0", amp_cast_list="", loss_scale_type="fixed", loss_scale=128)
        monitor = StateMonitor(
            trainer, model_name="resnet18", model_ema=False, last_epoch=0, dataset_sink_mode=False, dataset_val=checking,
            metric_name=list(metrics), val_interval=1, ckpt_save_dir=str(folder / f"out{mode}"), ckpt_save_interval=1, log_interval=1,
        )
        trainer.train(3, training, callbacks=[monitor], dataset_sink_mode=False)
        last = sorted((folder / f"out{mode}").glob("*.ckpt"))
        loaded = create_model("resnet18", num_classes=2, checkpoint_path=str(last[-1]))
        accuracy = ms.Model(loaded, loss_fn=loss, metrics=metrics).eval(checking)["Top_1_Accuracy"]
    finally:
        ms.set_context(mode=1)
    return {"told": f"accuracy {accuracy:.2f} after 3 epochs"}
