"""Initial values after one seed, bit for bit, and how far NumPy's stream has moved afterwards."""
from __future__ import annotations

import copy
import hashlib

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, mint, nn
from mindspore.common import initializer as init
from mindspore.common.initializer import Initializer, initializer
from mindspore.nn.probability import bnn_layers
from parity.case import case

INITIALIZERS = {
    "Normal": lambda: init.Normal(),
    "Normal_mean": lambda: init.Normal(1.7, 0.3),
    "Normal_sigma_0": lambda: init.Normal(0.0, 0.5),
    "Uniform": lambda: init.Uniform(),
    "Uniform_wide": lambda: init.Uniform(3.1),
    "TruncatedNormal": lambda: init.TruncatedNormal(),
    "TruncatedNormal_narrow": lambda: init.TruncatedNormal(0.5, 0.1, -0.2, 0.3),
    "TruncatedNormal_tail": lambda: init.TruncatedNormal(1.0, 0.0, 4.0, 9.0),
    "XavierNormal": lambda: init.XavierNormal(1.3),
    "XavierUniform": lambda: init.XavierUniform(0.7),
    "HeNormal": lambda: init.HeNormal(0.2, "fan_out"),
    "HeUniform": lambda: init.HeUniform(5**0.5),
    "HeUniform_tanh": lambda: init.HeUniform(mode="fan_out", nonlinearity="tanh"),
    "VarianceScaling": lambda: init.VarianceScaling(),
    "VarianceScaling_uniform": lambda: init.VarianceScaling(2.0, "fan_avg", "uniform"),
    "VarianceScaling_normal": lambda: init.VarianceScaling(0.5, "fan_out", "untruncated_normal"),
    "Sparse": lambda: init.Sparse(0.4, 0.3),
    "Constant": lambda: init.Constant(0.1),
    "One": lambda: init.One(),
    "Zero": lambda: init.Zero(),
    "Identity": lambda: init.Identity(),
}
DTYPES = {"float32": ms.float32, "float16": ms.float16, "bfloat16": ms.bfloat16, "float64": ms.float64, "int32": ms.int32}


def bits(tensor):
    """Values of a Tensor or Parameter as a short text that shows each bit of them."""
    array = tensor.float().asnumpy() if tensor.dtype == ms.bfloat16 else tensor.asnumpy()
    return f"{array.dtype} {list(array.shape)} {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]}"


def stream():
    """The next number of NumPy's stream, which tells how far the stream has moved."""
    return int(np.random.randint(1 << 30))


@case(over={f"{name}-{dtype}": (name, dtype) for name in INITIALIZERS for dtype in DTYPES})
def initial_values(chosen):
    name, dtype = chosen
    ms.set_seed(3)
    first = initializer(INITIALIZERS[name](), (7, 9), DTYPES[dtype]).init_data()
    second = Parameter(initializer(INITIALIZERS[name](), [6, 5], DTYPES[dtype]), name="w")
    return {"first": bits(first), "second": bits(second), "stream": stream()}


@case(over=["normal", "uniform", "truncatedNormal", "xavier_uniform", "xavier_normal", "he_uniform", "he_normal"])
def names_of_initializers(name):
    np.random.seed(5)
    large = initializer(name, (64, 33, 3, 3)).init_data()
    odd = initializer(name, (3, 7)).init_data()
    return {"large": bits(large), "odd": bits(odd), "stream": stream()}


@case(rtol=1e-6, atol=1e-6)
def orthogonal():
    ms.set_seed(4)
    matrices = [initializer(init.Orthogonal(1.5), shape).init_data().asnumpy() for shape in ((4, 6), (6, 4), (5, 2, 3))]
    return {"wide": matrices[0], "tall": matrices[1], "kernel": matrices[2], "stream": stream()}


@case(over=[0, 1, 2**31 - 1, 2**31, 2**32 - 1])
def seeds(seed):
    ms.set_seed(seed)
    return {"values": bits(initializer("normal", (5, 5)).init_data()), "stream": stream()}


@case()
def order_of_uses():
    ms.set_seed(8)
    first, second, unused = (initializer("normal", (4,)) for _ in range(3))
    return {
        "second": bits(second.init_data()), "first": bits(Parameter(first)), "stream": stream(), "has_init": unused.has_init,
        "again": bits(Parameter(first)), "seed": ms.get_seed(), "after": first.has_init,
    }  # fmt: skip


@case()
def set_seed_between():
    value = initializer("uniform", (4,))
    np.random.seed(11)
    return {"value": bits(value.init_data()), "stream": stream()}


@case(over=[None, 2**20])
def slices(seed):
    if seed is not None:
        ms.set_seed(seed)
    else:
        ms.set_seed(6)
    chosen = ((0, [4, 4]), (1, [4, 4]), (0, [4, 4]), (3, [2, 2]))
    values = [initializer("normal", (8, 4)).init_data(index, shape) for index, shape in chosen]
    return {"values": [bits(value) for value in values], "stream": stream()}


class Own(Initializer):
    """Draws from NumPy and by the helpers."""

    def _initialize(self, arr):
        arr[:] = np.random.uniform(-1, 1, arr.shape)
        arr[0] = init._init_random_normal(0.5, 2.0, arr[0].shape)
        arr[1] = init._init_random_uniform(0.5, 2.0, arr[0].shape)
        arr[2] = init._init_truncated_normal(-1, 1, 0.1, 2.0, arr[0].shape)
        init._assignment(arr[3], init._init_random_normal(0, 1, arr[3].shape))


class Keras(Initializer):
    """Passes on to another Initializer."""

    def _initialize(self, arr):
        init.Normal(0.2)._initialize(arr)
        init.XavierUniform()(arr)


class Seeded(Initializer):
    """Uses the seeds of the base class."""

    def _initialize(self, arr):
        arr[:] = np.array(self.seed, np.float64).sum() % 1000


@case(over={f"{cls.__name__}-{dtype}": (cls, dtype) for cls in (Own, Keras, Seeded) for dtype in ("float32", "float16", "float64")})
def subclasses(chosen):
    cls, dtype = chosen
    ms.set_seed(9)
    values = [bits(initializer(cls(), (5, 6), DTYPES[dtype]).init_data()) for _ in range(2)]
    return {"values": values, "dtype_of_array": dtype, "stream": stream()}


@case()
def graph_seeds():
    ms.set_seed(0)
    seeds = [init._get_graph_seed(*key) for key in ((0, "a"), (0, "a"), (3, "a"), (0, "b"), (3, "a"), (None, "a"))]
    ms.set_seed(2**31)
    seeds += [init._get_graph_seed(*key) for key in ((0, "a"), (5, "a"), (5, "a"))]
    return {"seeds": [list(pair) for pair in seeds]}


LAYERS = {
    "Dense": lambda: nn.Dense(4, 5),
    "Dense_no_bias": lambda: nn.Dense(4, 5, has_bias=False),
    "Dense_normal": lambda: nn.Dense(4, 5, weight_init="normal", bias_init="uniform", activation="relu"),
    "Dense_half": lambda: nn.Dense(4, 5, dtype=ms.float16),
    "Linear": lambda: nn.Linear(4, 5) if hasattr(nn, "Linear") else nn.Dense(4, 5),
    "BiDense": lambda: nn.BiDense(4, 5, 3),
    "Conv1d": lambda: nn.Conv1d(3, 4, 3, has_bias=True),
    "Conv2d": lambda: nn.Conv2d(3, 4, 3),
    "Conv2d_bias": lambda: nn.Conv2d(4, 4, 3, has_bias=True, group=2),
    "Conv2d_xavier": lambda: nn.Conv2d(3, 4, 3, weight_init="XavierUniform"),
    "Conv3d": lambda: nn.Conv3d(3, 4, 3, has_bias=True),
    "Conv1dTranspose": lambda: nn.Conv1dTranspose(3, 4, 3, has_bias=True),
    "Conv2dTranspose": lambda: nn.Conv2dTranspose(3, 4, 3, has_bias=True),
    "Conv3dTranspose": lambda: nn.Conv3dTranspose(3, 4, 3, has_bias=True),
    "Conv2dBnAct": lambda: nn.Conv2dBnAct(3, 4, 3, has_bn=True, activation="relu"),
    "DenseBnAct": lambda: nn.DenseBnAct(3, 4, has_bn=True, activation="relu"),
    "BatchNorm2d": lambda: nn.BatchNorm2d(4),
    "LayerNorm": lambda: nn.LayerNorm((4,)),
    "GroupNorm": lambda: nn.GroupNorm(2, 4),
    "PReLU": lambda: nn.PReLU(),
    "Embedding": lambda: nn.Embedding(6, 4),
    "Embedding_padding": lambda: nn.Embedding(6, 4, padding_idx=1),
    "EmbeddingLookup": lambda: nn.EmbeddingLookup(6, 4),
    "MultiFieldEmbeddingLookup": lambda: nn.MultiFieldEmbeddingLookup(6, 4, 2),
    "RNNCell": lambda: nn.RNNCell(3, 4),
    "GRUCell": lambda: nn.GRUCell(3, 4),
    "LSTMCell": lambda: nn.LSTMCell(3, 4),
    "RNN": lambda: nn.RNN(3, 4, num_layers=2, bidirectional=True),
    "GRU": lambda: nn.GRU(3, 4, num_layers=2, bidirectional=True),
    "LSTM": lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True),
    "LSTM_no_bias": lambda: nn.LSTM(3, 4, has_bias=False),
    "MultiheadAttention": lambda: nn.MultiheadAttention(8, 2),
    "MultiheadAttention_other": lambda: nn.MultiheadAttention(8, 2, kdim=4, vdim=6, add_bias_kv=True),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(8, 2, 16),
    "TransformerDecoderLayer": lambda: nn.TransformerDecoderLayer(8, 2, 16),
    "TransformerEncoder": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2),
    "Transformer": lambda: nn.Transformer(8, 2, 1, 1, 16),
    "Embedding_Thor": lambda: nn.EmbeddingThor(6, 4),
    "mint_Linear": lambda: mint.nn.Linear(4, 5),
    "mint_Embedding": lambda: mint.nn.Embedding(6, 4),
    "mint_Conv2d": lambda: mint.nn.Conv2d(3, 4, 3),
    "mint_Conv3d": lambda: mint.nn.Conv3d(3, 4, 3),
    "mint_BatchNorm2d": lambda: mint.nn.BatchNorm2d(3),
    "mint_LayerNorm": lambda: mint.nn.LayerNorm(3),
    "mint_PReLU": lambda: mint.nn.PReLU(),
    "SequentialCell": lambda: nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Dense(3, 3)),
    "Dropout": lambda: nn.Dropout(p=0.5),
    "DenseReparam": lambda: bnn_layers.DenseReparam(4, 3),
    "ConvReparam": lambda: bnn_layers.ConvReparam(2, 3, 3),
}


@case(over=LAYERS)
def layers(make):
    ms.set_seed(2)
    layer = make()
    values = {name: bits(parameter) for name, parameter in layer.parameters_and_names()}
    return {"values": values, "stream": stream()}


@case()
def optimizers_and_wrappers_draw_nothing():
    ms.set_seed(2)
    net = nn.Dense(3, 3)
    before = np.random.get_state()[2]
    nn.Adam(net.trainable_params())
    nn.Momentum(net.trainable_params(), 0.1, 0.9)
    nn.WithLossCell(net, nn.MSELoss())
    copy.deepcopy(net.weight)
    net.weight.clone()
    Tensor(np.ones(3, np.float32))
    return {"moved": int(np.random.get_state()[2] - before), "clone": bits(net.weight.clone(init="normal")), "stream": stream()}
