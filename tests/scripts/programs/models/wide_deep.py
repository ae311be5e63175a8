"""Wide & Deep: FTRL for the wide part, Adam for the deep part, both stepped in one training Cell with F.depend (1.x zoo)."""
import mindspore.common.dtype as mstype
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, context, nn
from mindspore.common.initializer import Normal, Uniform, initializer
from mindspore.nn import Dropout
from mindspore.nn.optim import FTRL, Adam
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

from measured import MODE, begin, train

context.set_context(mode=MODE, device_target="CPU")
FIELDS, VOCAB, WIDTH = 6, 40, 4


def init_method(method, shape, name, max_val=1.0):
    if method == "normal":
        return Parameter(initializer(Normal(max_val), shape, mstype.float32), name=name)
    return Parameter(initializer(Uniform(max_val) if method == "random" else method, shape, mstype.float32), name=name)


class DenseLayer(nn.Cell):
    def __init__(self, input_dim, output_dim, keep_prob=1.0, use_activation=True):
        super(DenseLayer, self).__init__()
        self.weight = init_method("normal", [input_dim, output_dim], name="weight")
        self.bias = init_method("zero", [output_dim], name="bias")
        self.act_func = P.ReLU()
        self.matmul = P.MatMul(transpose_b=False)
        self.bias_add = P.BiasAdd()
        self.dropout = Dropout(p=1 - keep_prob)
        self.use_activation = use_activation

    def construct(self, x):
        x = self.bias_add(self.matmul(self.dropout(x), self.weight), self.bias)
        if self.use_activation:
            x = self.act_func(x)
        return x


class WideDeepModel(nn.Cell):
    def __init__(self):
        super(WideDeepModel, self).__init__()
        self.wide_b = init_method("zero", [1], name="wide_b")
        self.wide_embeddinglookup = nn.Embedding(VOCAB, 1)
        self.deep_embeddinglookup = nn.Embedding(VOCAB, WIDTH)
        self.dense_layers = nn.CellList([DenseLayer(FIELDS * WIDTH, 16), DenseLayer(16, 8), DenseLayer(8, 1, use_activation=False)])
        self.mul, self.reduce_sum, self.reshape = P.Mul(), P.ReduceSum(keep_dims=False), P.Reshape()
        self.tile, self.concat, self.expand = P.Tile(), P.Concat(axis=1), P.ExpandDims()
        self.embedding_table = self.deep_embeddinglookup.embedding_table

    def construct(self, id_hldr, wt_hldr):
        mask = self.reshape(wt_hldr, (-1, FIELDS, 1))
        wide = self.mul(self.wide_embeddinglookup(id_hldr), mask)
        wide_out = self.reshape(self.reduce_sum(wide, 1) + self.wide_b, (-1, 1))
        deep = self.reshape(self.mul(self.deep_embeddinglookup(id_hldr), mask), (-1, FIELDS * WIDTH))
        for layer in self.dense_layers:
            deep = layer(deep)
        return wide_out + deep, self.embedding_table


class NetWithLossClass(nn.Cell):
    def __init__(self, network, l2_coef=1e-4):
        super(NetWithLossClass, self).__init__(auto_prefix=False)
        self.network = network
        self.loss = P.SigmoidCrossEntropyWithLogits()
        self.square, self.l2_coef = P.Square(), l2_coef
        self.reduceMean_false, self.reduceSum_false = P.ReduceMean(keep_dims=False), P.ReduceSum(keep_dims=False)

    def construct(self, batch_ids, batch_wts, label):
        predict, table = self.network(batch_ids, batch_wts)
        wide_loss = self.reduceMean_false(self.loss(predict, label))
        deep_loss = wide_loss + self.l2_coef * self.reduceSum_false(self.square(table)) / 2
        return wide_loss, deep_loss


class IthOutputCell(nn.Cell):
    def __init__(self, network, output_index):
        super(IthOutputCell, self).__init__()
        self.network = network
        self.output_index = output_index

    def construct(self, x1, x2, x3):
        return self.network(x1, x2, x3)[self.output_index]


class TrainStepWrap(nn.Cell):
    def __init__(self, network, sens=8.0):
        super(TrainStepWrap, self).__init__()
        self.network = network
        self.network.set_train()
        self.trainable_params = network.trainable_params()
        weights_w, weights_d = [], []
        for params in self.trainable_params:
            if "wide" in params.name:
                weights_w.append(params)
            else:
                weights_d.append(params)
        self.weights_w, self.weights_d = ParameterTuple(weights_w), ParameterTuple(weights_d)
        self.optimizer_d = Adam(self.weights_d, learning_rate=3.5e-3, eps=1e-5, loss_scale=sens)
        self.optimizer_w = FTRL(learning_rate=5e-2, params=self.weights_w, l1=0.0, l2=1e-4, initial_accum=1.0, loss_scale=sens)
        self.hyper_map = C.HyperMap()
        self.grad_w = C.GradOperation(get_by_list=True, sens_param=True)
        self.grad_d = C.GradOperation(get_by_list=True, sens_param=True)
        self.sens = sens
        self.loss_net_w = IthOutputCell(network, output_index=0)
        self.loss_net_d = IthOutputCell(network, output_index=1)
        self.loss_net_w.set_grad()
        self.loss_net_d.set_grad()

    def construct(self, batch_ids, batch_wts, label):
        weights_w, weights_d = self.weights_w, self.weights_d
        loss_w, loss_d = self.network(batch_ids, batch_wts, label)
        sens_w = P.Fill()(P.DType()(loss_w), P.Shape()(loss_w), self.sens)
        sens_d = P.Fill()(P.DType()(loss_d), P.Shape()(loss_d), self.sens)
        grads_w = self.grad_w(self.loss_net_w, weights_w)(batch_ids, batch_wts, label, sens_w)
        grads_d = self.grad_d(self.loss_net_d, weights_d)(batch_ids, batch_wts, label, sens_d)
        return F.depend(loss_w, self.optimizer_w(grads_w)), F.depend(loss_d, self.optimizer_d(grads_d))


random = np.random.RandomState(181)
ids, weights = Tensor(random.randint(0, VOCAB, (16, FIELDS)), mstype.int32), Tensor(random.rand(16, FIELDS), mstype.float32)
label = Tensor(random.randint(0, 2, (16, 1)), mstype.float32)
net = begin(WideDeepModel(), 5, 0.4)
step = TrainStepWrap(NetWithLossClass(net))
train(lambda: step(ids, weights, label), net)
