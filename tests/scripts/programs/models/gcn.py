"""GCN on a made graph: a normalized adjacency matrix, masked cross-entropy and accuracy, weight decay on the first layer (1.x zoo)."""
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from mindspore.nn.layer.activation import get_activation
from mindspore.ops import functional as F
from mindspore.ops import operations as P

from measured import MODE, begin, report, train

context.set_context(mode=MODE, device_target="CPU", save_graphs=False)


def glorot(shape):
    bound = np.sqrt(6.0 / (shape[0] + shape[1]))
    return Tensor(np.random.RandomState(1).uniform(-bound, bound, shape).astype(np.float32))


class GraphConvolution(nn.Cell):
    def __init__(self, feature_in_dim, feature_out_dim, dropout_ratio=None, activation=None):
        super(GraphConvolution, self).__init__()
        self.in_dim = feature_in_dim
        self.out_dim = feature_out_dim
        self.weight_init = glorot([self.out_dim, self.in_dim])
        self.fc = nn.Dense(self.in_dim, self.out_dim, weight_init=self.weight_init, has_bias=False)
        self.dropout_ratio = dropout_ratio
        if self.dropout_ratio is not None:
            self.dropout = nn.Dropout(p=self.dropout_ratio)
        self.dropout_flag = self.dropout_ratio is not None
        self.activation = get_activation(activation)
        self.activation_flag = self.activation is not None
        self.matmul = P.MatMul()

    def construct(self, adj, input_feature):
        dropout = input_feature
        if self.dropout_flag:
            dropout = self.dropout(dropout)
        fc = self.fc(dropout)
        output_feature = self.matmul(adj, fc)
        if self.activation_flag:
            output_feature = self.activation(output_feature)
        return output_feature


class GCN(nn.Cell):
    def __init__(self, input_dim, hidden, output_dim):
        super(GCN, self).__init__()
        self.layer0 = GraphConvolution(input_dim, hidden, activation="relu", dropout_ratio=0.0)
        self.layer1 = GraphConvolution(hidden, output_dim, dropout_ratio=None)

    def construct(self, adj, feature):
        return self.layer1(adj, self.layer0(adj, feature))


class Loss(nn.Cell):
    def __init__(self, label, mask, weight_decay, param):
        super(Loss, self).__init__(auto_prefix=False)
        self.label, self.mask = Tensor(label), Tensor(mask)
        self.loss = P.SoftmaxCrossEntropyWithLogits()
        self.one, self.zero = Tensor(1.0), Tensor(0.0)
        self.num_params = len(param)
        self.mean = P.ReduceMean()
        self.cast = P.Cast()
        self.l2_loss = P.L2Loss()
        self.reduce_sum = P.ReduceSum()
        self.weight_decay = weight_decay
        self.param = param

    def construct(self, preds):
        param = self.l2_loss(self.param)
        loss = self.weight_decay * param
        preds = self.cast(preds, self.label.dtype)
        loss = loss + self.mean(self.loss(preds, self.label)[0] * (self.mask / self.mean(self.mask)))
        return loss


class LossAccuracyWrapper(nn.Cell):
    def __init__(self, network, label, mask, weight_decay):
        super(LossAccuracyWrapper, self).__init__(auto_prefix=False)
        self.network = network
        self.label, self.mask = Tensor(label), Tensor(mask)
        self.loss = Loss(label, mask, weight_decay, network.trainable_params()[0])
        self.equal, self.argmax, self.mean = P.Equal(), P.Argmax(), P.ReduceMean()

    def construct(self, adj, feature):
        preds = self.network(adj, feature)
        right = F.cast(self.equal(self.argmax(preds), self.argmax(self.label)), self.mask.dtype)
        return self.loss(preds), self.mean(right * (self.mask / self.mean(self.mask)))


class LossOnly(nn.Cell):
    def __init__(self, network, loss):
        super(LossOnly, self).__init__(auto_prefix=False)
        self.network, self.loss = network, loss

    def construct(self, adj, feature):
        return self.loss(self.network(adj, feature))


random = np.random.RandomState(221)
nodes, classes = 20, 4
edges = random.rand(nodes, nodes) > 0.8
adjacency = np.maximum(edges, edges.T) + np.eye(nodes)
degree = adjacency.sum(1) ** -0.5
adj = Tensor((adjacency * degree[:, None] * degree).astype(np.float32))
feature = Tensor(random.rand(nodes, 12).astype(np.float32))
label = np.eye(classes)[random.randint(0, classes, nodes)].astype(np.float32)
train_mask = (np.arange(nodes) < 12).astype(np.float32)
net = begin(GCN(12, 8, classes), 4)
loss_net = LossOnly(net, Loss(label, train_mask, 5e-4, net.trainable_params()[0]))
optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01, eps=1e-5)
train_net = nn.TrainOneStepCell(loss_net, optimizer).set_train()
train(lambda: train_net(adj, feature), net)
report(LossAccuracyWrapper(net.set_train(False), label, 1 - train_mask, 5e-4)(adj, feature))
