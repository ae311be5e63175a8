"""A BERT-like encoder in the 1.x zoo's spelling: padding masks, compute types, masked-word and sentence losses, own train step."""
import sys

import mindspore.common.dtype as mstype
import mindspore.nn as nn
import numpy as np
from mindspore import context
from mindspore.common.initializer import TruncatedNormal, initializer
from mindspore.common.parameter import Parameter, ParameterTuple
from mindspore.common.tensor import Tensor
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

context.set_context(mode=context.GRAPH_MODE if "graph" in sys.argv[1:] else context.PYNATIVE_MODE)


class Config:
    def __init__(self, **options):
        self.hidden, self.heads, self.layers, self.vocab, self.length, self.types = 16, 2, 2, 30, 12, 2
        self.dtype, self.compute_type = mstype.float32, mstype.float32
        self.__dict__.update(options)


class EmbeddingPostprocessor(nn.Cell):
    def __init__(self, config):
        super(EmbeddingPostprocessor, self).__init__()
        self.token_type = Parameter(initializer(TruncatedNormal(0.02), [config.types, config.hidden]), name="token_type")
        self.full_position_embedding = Parameter(initializer(TruncatedNormal(0.02), [config.length, config.hidden]), name="position")
        self.one_hot, self.on, self.off = P.OneHot(), Tensor(1.0, mstype.float32), Tensor(0.0, mstype.float32)
        self.array_mul, self.reshape, self.shape = P.MatMul(), P.Reshape(), P.Shape()
        self.layernorm = nn.LayerNorm((config.hidden,))
        self.slice = P.StridedSlice()
        self.config = config

    def construct(self, token_type_ids, word_embeddings):
        output = word_embeddings
        one_hot = self.one_hot(self.reshape(token_type_ids, (-1,)), self.config.types, self.on, self.off)
        output += self.reshape(self.array_mul(one_hot, self.token_type), self.shape(output))
        width = self.shape(output)[1]
        position = self.slice(self.full_position_embedding, (0, 0), (width, self.config.hidden), (1, 1))
        return self.layernorm(output + P.ExpandDims()(position, 0))


class SelfAttention(nn.Cell):
    def __init__(self, config):
        super(SelfAttention, self).__init__()
        self.heads, self.size = config.heads, config.hidden // config.heads
        init = TruncatedNormal(0.02)
        self.query = nn.Dense(config.hidden, config.hidden, weight_init=init).to_float(config.compute_type)
        self.key = nn.Dense(config.hidden, config.hidden, weight_init=init).to_float(config.compute_type)
        self.value = nn.Dense(config.hidden, config.hidden, weight_init=init).to_float(config.compute_type)
        self.output = nn.Dense(config.hidden, config.hidden, weight_init=init)
        self.matmul_trans_b, self.matmul = P.BatchMatMul(transpose_b=True), P.BatchMatMul()
        self.softmax, self.transpose, self.reshape, self.cast = nn.Softmax(), P.Transpose(), P.Reshape(), P.Cast()
        self.multiply_data = Tensor([-10000.0], dtype=config.compute_type)
        self.scores_mul = Tensor([1.0 / np.sqrt(float(self.size))], dtype=config.compute_type)

    def _heads(self, x, shape):
        return self.transpose(self.reshape(x, shape[:2] + (self.heads, self.size)), (0, 2, 1, 3))

    def construct(self, x, mask):
        shape = x.shape
        q, k, v = self._heads(self.query(x), shape), self._heads(self.key(x), shape), self._heads(self.value(x), shape)
        scores = self.matmul_trans_b(q, k) * self.scores_mul
        adder = P.Sub()(Tensor([1.0], mstype.float32), self.cast(P.ExpandDims()(mask, 1), mstype.float32)) * self.multiply_data
        probs = self.softmax(scores + adder)
        return self.output(self.reshape(self.transpose(self.matmul(probs, v), (0, 2, 1, 3)), shape))


class Encoder(nn.Cell):
    def __init__(self, config):
        super(Encoder, self).__init__()
        layers = []
        for _ in range(config.layers):
            layers.append(nn.CellList([SelfAttention(config), nn.LayerNorm((config.hidden,)),
                                       nn.Dense(config.hidden, 32, activation="gelu"), nn.Dense(32, config.hidden), nn.LayerNorm((config.hidden,))]))
        self.layers = nn.CellList(layers)

    def construct(self, x, mask):
        for attention, norm, up, down, last in self.layers:
            x = norm(attention(x, mask) + x)
            x = last(down(up(x)) + x)
        return x


class Pretraining(nn.Cell):
    def __init__(self, config):
        super(Pretraining, self).__init__()
        self.embedding = nn.Embedding(config.vocab, config.hidden, padding_idx=0)
        self.post, self.encoder = EmbeddingPostprocessor(config), Encoder(config)
        self.pooler = nn.Dense(config.hidden, config.hidden, activation="tanh")
        self.is_next, self.config = nn.Dense(config.hidden, 2), config
        self.log_softmax, self.bias = nn.LogSoftmax(axis=-1), Parameter(initializer("zeros", config.vocab), name="masked_bias")

    def construct(self, ids, input_mask, types, positions, labels, weights, next_label):
        b, length = ids.shape
        mask = P.Tile()(P.Reshape()(input_mask, (b, 1, length)), (1, length, 1))
        x = self.encoder(self.post(types, self.embedding(ids)), mask)
        offsets = F.reshape(F.tuple_to_array(tuple(range(b))), (-1, 1)) * length
        flat = P.Gather()(P.Reshape()(x, (-1, self.config.hidden)), P.Reshape()(positions + offsets, (-1,)), 0)
        logits = P.MatMul(transpose_b=True)(flat, self.embedding.embedding_table) + self.bias
        picked = P.ReduceSum()(self.log_softmax(logits) * P.OneHot()(P.Reshape()(labels, (-1,)), self.config.vocab, Tensor(1.0), Tensor(0.0)), -1)
        weights = P.Reshape()(weights, (-1,))
        masked = P.Neg()(P.ReduceSum()(picked * weights)) / (P.ReduceSum()(weights) + 1e-5)
        next_log = self.log_softmax(self.is_next(self.pooler(x[:, 0])))
        following = P.ReduceMean()(-P.ReduceSum()(next_log * P.OneHot()(next_label, 2, Tensor(1.0), Tensor(0.0)), -1))
        return masked + following


class TrainStep(nn.Cell):
    def __init__(self, network, optimizer):
        super(TrainStep, self).__init__(auto_prefix=False)
        self.network, self.optimizer = network, optimizer
        self.weights = ParameterTuple(network.trainable_params())
        self.grad = C.GradOperation(get_by_list=True, sens_param=True)
        self.network.set_grad()

    def construct(self, *batch):
        loss = self.network(*batch)
        grads = self.grad(self.network, self.weights)(*batch, P.Fill()(P.DType()(loss), P.Shape()(loss), 1.0))
        grads = C.clip_by_global_norm(grads, 1.0)
        return F.depend(loss, self.optimizer(grads))


config, rng = Config(), np.random.RandomState(12)
net = Pretraining(config)
for param in net.trainable_params():
    if param.ndim > 1:
        param.set_data(Tensor(rng.normal(0, 0.15, param.shape).astype(np.float32)))
    elif param.name.endswith("bias"):
        param.set_data(Tensor(np.zeros(param.shape, np.float32)))
params = net.trainable_params()
decay = [p for p in params if "layernorm" not in p.name.lower() and "bias" not in p.name and "gamma" not in p.name and "beta" not in p.name]
names = {p.name for p in decay}
optimizer = nn.AdamWeightDecay([{"params": decay, "weight_decay": 0.01}, {"params": [p for p in params if p.name not in names]},
                                {"order_params": params}], learning_rate=2e-3)
print(len(params), len(decay), params[0].name, params[-1].name, len(optimizer.parameters))
step = TrainStep(net, optimizer)
step.set_train()
ids = rng.randint(1, 30, (6, 12)).astype(np.int32)
mask = (np.arange(12)[None] < rng.randint(6, 13, (6, 1))).astype(np.int32)
types = (np.arange(12)[None] >= 6).astype(np.int32) * np.ones((6, 1), np.int32)
positions = np.stack([rng.choice(6, 2, replace=False) for _ in range(6)]).astype(np.int32)
labels = np.take_along_axis(ids, positions, 1)
batch = [Tensor(ids * mask), Tensor(mask), Tensor(types), Tensor(positions), Tensor(labels), Tensor(np.ones((6, 2), np.float32)),
         Tensor(rng.randint(0, 2, 6).astype(np.int32))]
for number in range(8):
    loss = step(*batch)
    if number % 2 == 1:
        print("step", number + 1, "%.4f" % float(loss.asnumpy()))
print("%.4f" % float(net(*batch).asnumpy()))
