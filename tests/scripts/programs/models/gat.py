"""GAT: attention coefficients of several heads over a dense graph, LeakyReLU and a bias matrix, averaged last heads (1.x zoo)."""
import mindspore.nn as nn
import numpy as np
from mindspore import Parameter, Tensor, context
from mindspore.common.initializer import initializer
from mindspore.ops import operations as P

from measured import MODE, begin, train

context.set_context(mode=MODE)


class GNNFeatureTransform(nn.Cell):
    def __init__(self, in_channels, out_channels):
        super(GNNFeatureTransform, self).__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.weight = Parameter(initializer("xavier_uniform", [out_channels, in_channels]), name="weight")
        self.matmul = P.MatMul(transpose_b=True)
        self.reshape = P.Reshape()

    def construct(self, x):
        batch, nodes, _ = P.Shape()(x)
        x = self.matmul(self.reshape(x, (-1, self.in_channels)), self.weight)
        return self.reshape(x, (batch, nodes, self.out_channels))

    def extend_repr(self):
        return "in_channels={}, out_channels={}".format(self.in_channels, self.out_channels)


class AttentionHead(nn.Cell):
    def __init__(self, in_channel, out_channel, residual=False, activation=None):
        super(AttentionHead, self).__init__()
        self.feature_transform = GNNFeatureTransform(in_channel, out_channel)
        self.f_1_transform, self.f_2_transform = GNNFeatureTransform(out_channel, 1), GNNFeatureTransform(out_channel, 1)
        self.softmax, self.leaky = nn.Softmax(), nn.LeakyReLU()
        self.bias = Parameter(initializer("zeros", [out_channel]), name="bias")
        self.matmul, self.transpose, self.bias_add = P.BatchMatMul(), P.Transpose(), P.BiasAdd()
        self.residual = residual
        if residual:
            self.skip = GNNFeatureTransform(in_channel, out_channel)
        self.activation = activation

    def construct(self, x, bias_mat):
        feature = self.feature_transform(x)
        f_1, f_2 = self.f_1_transform(feature), self.f_2_transform(feature)
        logits = f_1 + self.transpose(f_2, (0, 2, 1))
        coefficients = self.softmax(self.leaky(logits) + bias_mat)
        ret = self.matmul(coefficients, feature)
        ret = P.Reshape()(self.bias_add(P.Reshape()(ret, (-1, ret.shape[-1])), self.bias), ret.shape)
        if self.residual:
            ret = ret + self.skip(x)
        return ret if self.activation is None else self.activation(ret)


class AttentionAggregator(nn.Cell):
    def __init__(self, in_channels, out_channels, num_heads, activation, residual=False, output_transform="concat"):
        super(AttentionAggregator, self).__init__()
        self.num_heads = num_heads
        self.attns = [AttentionHead(in_channels, out_channels, residual, activation) for _ in range(num_heads)]
        self.attns = nn.CellList(self.attns)
        self.output_transform = output_transform
        self.concat, self.add_n = P.Concat(-1), P.AddN()

    def construct(self, input_data, bias_mat):
        res = ()
        for attn in self.attns:
            res += (attn(input_data, bias_mat),)
        if self.output_transform == "concat":
            return self.concat(res)
        return self.add_n(res) / self.num_heads


class GAT(nn.Cell):
    def __init__(self):
        super(GAT, self).__init__()
        self.hidden = AttentionAggregator(10, 4, 3, nn.ELU())
        self.out = AttentionAggregator(12, 5, 2, None, residual=True, output_transform="sum")

    def construct(self, x, bias_mat):
        return P.Squeeze(0)(self.out(self.hidden(x, bias_mat), bias_mat))


class MaskedLoss(nn.Cell):
    def __init__(self, network, label, mask, l2_coeff=5e-4):
        super(MaskedLoss, self).__init__(auto_prefix=False)
        self.network, self.label, self.mask = network, label, mask
        self.loss = P.SparseSoftmaxCrossEntropyWithLogits()
        self.ce = nn.SoftmaxCrossEntropyWithLogits(sparse=True)
        self.params = [p for p in network.trainable_params() if "bias" not in p.name]
        self.l2_loss, self.l2_coeff = P.L2Loss(), l2_coeff

    def construct(self, feature, bias_mat):
        l2 = 0
        for param in self.params:
            l2 = l2 + self.l2_loss(param)
        losses = self.ce(self.network(feature, bias_mat), self.label) * self.mask
        return P.ReduceSum()(losses) / P.ReduceSum()(self.mask) + l2 * self.l2_coeff


random = np.random.RandomState(231)
edges = random.rand(14, 14) > 0.7
bias = Tensor(np.where(edges | edges.T | np.eye(14, dtype=bool), 0.0, -1e9).astype(np.float32)[None])
feature = Tensor(random.randn(1, 14, 10).astype(np.float32))
net = begin(GAT(), 5, 0.6)
loss = MaskedLoss(net, Tensor(random.randint(0, 5, 14).astype(np.int32)), Tensor((np.arange(14) % 2).astype(np.float32)))
step = nn.TrainOneStepCell(loss, nn.Adam(net.trainable_params(), learning_rate=0.005, eps=1e-5))
step.set_train()
train(lambda: step(feature, bias), net)
