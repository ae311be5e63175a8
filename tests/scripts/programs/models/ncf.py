"""NCF: matrix factorization beside a multilayer perceptron, masks of valid points, hit ratio at 3 (1.x zoo)."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from mindspore.common.initializer import initializer
from mindspore.nn.layer.activation import get_activation
from mindspore.ops import operations as P

from measured import MODE, begin, report, train

context.set_context(mode=MODE)
USERS, ITEMS, FACTORS, LAYERS = 12, 20, 4, [16, 8]


class DenseLayer(nn.Cell):
    def __init__(self, in_channels, out_channels, weight_init="normal", bias_init="zeros", has_bias=True, activation=None):
        super(DenseLayer, self).__init__()
        self.weight = ms.Parameter(initializer(weight_init, [out_channels, in_channels]), name="weight")
        self.has_bias = has_bias
        if self.has_bias:
            self.bias = ms.Parameter(initializer(bias_init, [out_channels]), name="bias")
        self.matmul = P.MatMul(transpose_b=True)
        self.bias_add = P.BiasAdd()
        self.activation = get_activation(activation)

    def construct(self, x):
        output = self.matmul(x, self.weight)
        if self.has_bias:
            output = self.bias_add(output, self.bias)
        if self.activation is not None:
            return self.activation(output)
        return output


class NCFModel(nn.Cell):
    def __init__(self):
        super(NCFModel, self).__init__()
        half = LAYERS[0] // 2
        self.embedding_user = nn.Embedding(USERS, FACTORS + half)
        self.embedding_item = nn.Embedding(ITEMS, FACTORS + half)
        self.dense = nn.SequentialCell(DenseLayer(LAYERS[0], LAYERS[1], activation="relu"))
        self.logits_dense = DenseLayer(FACTORS + LAYERS[-1], 1, weight_init="normal", has_bias=False)
        self.mul, self.squeeze, self.concat = P.Mul(), P.Squeeze(axis=1), P.Concat(axis=1)
        self.begin, self.end = (0, 0), (None, FACTORS)

    def construct(self, user_input, item_input):
        user, item = self.squeeze(self.embedding_user(user_input)), self.squeeze(self.embedding_item(item_input))
        mf_vector = self.mul(user[:, :FACTORS], item[:, :FACTORS])
        mlp_vector = self.dense(self.concat((user[:, FACTORS:], item[:, FACTORS:])))
        return self.logits_dense(self.concat((mf_vector, mlp_vector)))


class NetWithLossClass(nn.Cell):
    def __init__(self, network):
        super(NetWithLossClass, self).__init__(auto_prefix=False)
        self.loss = P.SigmoidCrossEntropyWithLogits()
        self.network = network
        self.reducesum = P.ReduceSum(keep_dims=False)
        self.mul = P.Mul()
        self.squeeze = P.Squeeze(axis=1)
        self.cast = P.Cast()
        self.div = P.RealDiv()

    def construct(self, batch_users, batch_items, labels, valid_pt_mask):
        predict = self.network(batch_users, batch_items)
        loss = self.loss(predict, labels)
        loss = self.mul(loss, self.cast(valid_pt_mask, ms.float32))
        return self.div(self.reducesum(loss), self.reducesum(self.cast(valid_pt_mask, ms.float32)))


class PredictWithSigmoid(nn.Cell):
    def __init__(self, network, k):
        super(PredictWithSigmoid, self).__init__()
        self.network = network
        self.topk = P.TopK(sorted=True)
        self.k = k

    def construct(self, users, items):
        scores = P.Squeeze(1)(P.Sigmoid()(self.network(users, items)))
        return self.topk(scores, self.k)


random = np.random.RandomState(201)
users, items = Tensor(random.randint(0, USERS, (24, 1)), ms.int32), Tensor(random.randint(0, ITEMS, (24, 1)), ms.int32)
labels, valid = Tensor(random.randint(0, 2, (24, 1)), ms.float32), Tensor(random.rand(24, 1) > 0.2)
ncf_net = begin(NCFModel(), 2, 0.4)
loss_net = NetWithLossClass(ncf_net)
step = nn.TrainOneStepCell(loss_net, nn.LazyAdam(loss_net.trainable_params(), learning_rate=0.01, beta1=0.9, beta2=0.999, eps=1e-5, loss_scale=2.0), 2.0)
step.set_train()
train(lambda: step(users, items, labels, valid), ncf_net)
values, indices = PredictWithSigmoid(ncf_net, 3)(Tensor(np.full((20, 1), 4), ms.int32), Tensor(np.arange(20)[:, None], ms.int32))
report(values, indices)
