"""The very bytes of checkpoint files with appended values, text, bfloat16, 0-d and empty tensors, and a checksum; what is refused."""

from __future__ import annotations

import os
import tempfile

import mindspore as ms
import numpy as np
from mindspore import nn
from parity.case import case
from parity.checkpoint_bytes import without_head

WEIGHT = np.arange(6, dtype=np.float32).reshape(3, 2) / 7


def written_bytes(save):
    """The bytes of the file that `save(path)` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file.ckpt")
        save(path)
        with open(path, "rb") as file:
            return np.frombuffer(without_head(file.read()), np.uint8)


def net():
    return nn.Dense(2, 3, weight_init=ms.Tensor(WEIGHT), bias_init="ones")


def save(what, path, **keywords):
    """With a checksum, which is written here in any case."""
    ms.save_checkpoint(what, path, crc_check=True, **keywords)


FILES = {
    "cell": lambda path: save(net(), path),
    "appended": lambda path: save(
        net(),
        path,
        append_dict={"epoch": 3, "rate": 0.1, "done": True, "note": "Zürich", "state": ms.Tensor([1, 2]), "one": ms.Tensor(2.5)},
    ),
    "bfloat16": lambda path: save([{"name": "b", "data": ms.Tensor([1.5, -2.25, 3e38], ms.bfloat16)}], path),
    "0-d": lambda path: save([{"name": "z", "data": ms.Tensor(2.0)}], path),
    "unsigned": lambda path: save([{"name": "u", "data": ms.Tensor(np.array([1, 2], np.uint32))}], path),
    "chosen": lambda path: save(net(), path, choice_func=lambda name: name == "bias"),
}


@case(over=list(FILES))
def file_bytes(name):
    return {"bytes": written_bytes(FILES[name])}


def kind(call):
    try:
        call()
    except Exception as error:
        return next(base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins")
    return None


def loading(content, name="x.ckpt", **keywords):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return ms.load_checkpoint(path, **keywords)


def cut():
    return loading(written_bytes(FILES["cell"]).tobytes()[:-24])


REFUSED = {
    "object": lambda: ms.save_checkpoint(3, "x.ckpt"),
    "name": lambda: ms.save_checkpoint(net(), 3),
    "format": lambda: ms.save_checkpoint(net(), "x", format="z"),
    "folder": lambda: ms.save_checkpoint(net(), "/nowhere/at/all/x.ckpt"),
    "append list": lambda: written_bytes(lambda path: ms.save_checkpoint(net(), path, append_dict={"x": [1]})),
    "append number": lambda: written_bytes(lambda path: ms.save_checkpoint(net(), path, append_dict=3)),
    "async 3": lambda: written_bytes(lambda path: ms.save_checkpoint(net(), path, async_save=3)),
    "list of arrays": lambda: written_bytes(lambda path: ms.save_checkpoint([{"name": "a", "data": np.ones(2)}], path)),
    "missing": lambda: ms.load_checkpoint("/nowhere/x.ckpt"),
    "no suffix": lambda: loading(b"", "x"),
    "number": lambda: ms.load_checkpoint(3),
    "foreign": lambda: loading(b"hello world" * 10),
    "cut short": cut,
    "empty": lambda: loading(b""),
    "prefix empty": lambda: loading(written_bytes(FILES["cell"]).tobytes(), filter_prefix=""),
    "prefix number": lambda: loading(written_bytes(FILES["cell"]).tobytes(), filter_prefix=3),
    "all filtered": lambda: loading(written_bytes(FILES["cell"]).tobytes(), filter_prefix=["weight", "bias"]),
    "net": lambda: ms.load_param_into_net(3, {}),
    "dict": lambda: ms.load_param_into_net(net(), 3),
    "Tensor": lambda: ms.load_param_into_net(net(), {"weight": ms.Tensor(WEIGHT)}),
    "strict 3": lambda: ms.load_param_into_net(net(), {}, strict_load=3),
    "shape": lambda: ms.load_param_into_net(net(), {"weight": ms.Parameter(ms.Tensor(WEIGHT.T), name="weight")}),
    "int": lambda: ms.load_param_into_net(net(), {"weight": ms.Parameter(ms.Tensor(WEIGHT.astype(np.int32)), name="weight")}),
    "strict type": lambda: ms.load_param_into_net(net(), {"weight": ms.Parameter(ms.Tensor(WEIGHT, ms.float16), name="weight")}, True),
}


@case(over=list(REFUSED))
def refused(name):
    return {"error": kind(REFUSED[name])}


@case()
def loading_into_a_net():
    parameters = {
        name: ms.Parameter(ms.Tensor(value), name=name) for name, value in {"weight": WEIGHT, "other": np.ones(2, np.float32)}.items()
    }
    network = net()
    first = ms.load_param_into_net(network, parameters)
    prefixed = ms.load_param_into_net(net(), {f"head.{name}": value for name, value in parameters.items()})
    half = net()
    ms.load_param_into_net(half, {"weight": ms.Parameter(ms.Tensor(WEIGHT + 1, ms.float16), name="weight")})
    nothing = ms.load_param_into_net(net(), {})
    lists = [[list(part) for part in answer] for answer in (first, prefixed, nothing)]
    return {"lists": lists, "half": half.weight.asnumpy(), "type": str(half.weight.dtype)}
