"""Names of operators in graphs of MindSpore and in torchspore: which of them compute the same.

Source: dumps and graphs of MindSpore 2.10 compared with those of torchspore for the same programs. All names are in lower case.
"""
from __future__ import annotations

import re

_REDUCTIONS = ("mean", "sum", "max", "min", "prod", "all", "any")
OTHER_NAMES = {"div": "realdiv", "concat": "cat"} | {name: f"reduce{name}" for name in _REDUCTIONS}
"""Operators of torchspore for which MindSpore's graphs have exactly one other name."""
_HERE = {
    "matmul": ("dense",), "biasadd": ("dense", "conv2d", "conv3d", "conv2dtranspose"), "batchmatmul": ("matmul", "bmm"),
    "conv2dbackpropinput": ("conv2dgrad", "conv2dtranspose"), "conv2dbackpropfilter": ("conv2dgrad",),
    "biasaddgrad": ("densegrad", "conv2dgrad"),
    "matmulgrad": ("densegrad",), "maxpool": ("pooling",), "avgpool": ("pooling",), "maxpoolgrad": ("poolinggrad",),
    "avgpoolgrad": ("poolinggrad",), "sparsesoftmaxcrossentropywithlogits": ("crossentropy",),
    "softmaxcrossentropywithlogits": ("crossentropy",), "applymomentum": ("momentum",), "sgd": ("sgd",), "applyadagrad": ("adagrad",),
    "applyrmsprop": ("rmsprop",), "applyftrl": ("ftrl",), "adamweightdecay": ("adamweightdecay",), "realdiv": ("div",), "cat": ("concat",),
} | {f"reduce{name}": (name,) for name in _REDUCTIONS}
_WITH_BIAS = frozenset({"dense", "conv2d", "conv3d", "conv1d", "conv2dtranspose", "conv3dtranspose"})
_AUXILIARY = frozenset({
    "batchnorm", "layernorm", "groupnorm", "instancenorm", "syncbatchnorm", "pooling", "maxpool", "crossentropy", "dropout", "nllloss",
    "softmaxcrossentropywithlogits", "maxpool3d", "lstm", "gru", "rnn", "batchnormext", "layernormext", "rmsnorm",
})


def plain(kind: str) -> str:
    """Return the kind in lower case, without the suffixes of variants: `BatchNormExt` and `BatchNormV3` become `batchnorm`."""
    return re.sub(r"(ext|v\d)$", "", kind.lower())


def names_here(kind: str) -> tuple[str, ...]:
    """Return the kinds in torchspore, in lower case, that compute the same as MindSpore's operator of this kind."""
    return _HERE.get(kind.lower(), ()) + _HERE.get(plain(kind), ())


def includes_bias(kind: str) -> bool:
    """Return whether an operator of this kind may add a bias itself; MindSpore's graphs use a BiasAdd."""
    return plain(kind) in _WITH_BIAS


def has_auxiliary_outputs(kind: str) -> bool:
    """Return whether the outputs after the first are values that the kernel saves for its backward pass, not results."""
    return plain(kind) in _AUXILIARY
