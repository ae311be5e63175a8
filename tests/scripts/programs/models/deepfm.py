"""DeepFM: factorization machine beside dense layers, AUC as a metric of one's own over Model.eval, a lazy optimizer (1.x zoo)."""
import mindspore.dataset as ds
import mindspore.nn as nn
import numpy as np
from mindspore import Model, Tensor, context
from mindspore.common import dtype as mstype
from mindspore.common.initializer import Uniform, initializer
from mindspore.common.parameter import Parameter
from mindspore.nn.metrics import Metric
from mindspore.ops import functional as F
from mindspore.ops import operations as P
from mindspore.train.callback import Callback

from measured import MODE, begin, finish, report

context.set_context(mode=MODE, device_target="CPU")
FIELDS, VOCAB, DIM, BATCH = 5, 30, 4, 16


class DeepFMModel(nn.Cell):
    def __init__(self):
        super(DeepFMModel, self).__init__()
        self.fm_w = Parameter(initializer(Uniform(0.1), [VOCAB, 1], mstype.float32), name="FM_W")
        self.embedding_table = Parameter(initializer(Uniform(0.1), [VOCAB, DIM], mstype.float32), name="V_l2")
        self.dense_layer_1 = nn.Dense(FIELDS * DIM, 12, activation="relu")
        self.dense_layer_2 = nn.Dense(12, 1)
        self.gather, self.mul, self.square = P.Gather(), P.Mul(), P.Square()
        self.reduce_sum, self.reshape, self.tile = P.ReduceSum(keep_dims=False), P.Reshape(), P.Tile()

    def construct(self, id_hldr, wt_hldr):
        mask = self.reshape(wt_hldr, (-1, FIELDS, 1))
        fm_id_weight = self.gather(self.fm_w, id_hldr, 0)
        linear_out = self.reduce_sum(self.mul(fm_id_weight, mask), 1)
        vx = self.mul(self.gather(self.embedding_table, id_hldr, 0), mask)
        v1 = self.square(self.reduce_sum(vx, 1))
        v2 = self.reduce_sum(self.square(vx), 1)
        fm_out = self.reshape(0.5 * self.reduce_sum(v1 - v2, 1), (-1, 1))
        deep_out = self.dense_layer_2(self.dense_layer_1(self.reshape(vx, (-1, FIELDS * DIM))))
        return linear_out + fm_out + deep_out, self.fm_w, self.embedding_table


class NetWithLossClass(nn.Cell):
    def __init__(self, network, l2_coef=8e-5):
        super(NetWithLossClass, self).__init__(auto_prefix=False)
        self.loss = P.SigmoidCrossEntropyWithLogits()
        self.network = network
        self.l2_coef = l2_coef

    def construct(self, batch_ids, batch_wts, label):
        predict, fm_id_weight, fm_id_embs = self.network(batch_ids, batch_wts)
        mean_log_loss = P.ReduceMean(keep_dims=False)(self.loss(predict, label))
        l2_v = P.ReduceSum(keep_dims=False)(P.Square()(fm_id_embs))
        l2_w = P.ReduceSum(keep_dims=False)(F.square(fm_id_weight))
        return mean_log_loss + self.l2_coef * 0.5 * (l2_v + l2_w)


class PredictWithSigmoid(nn.Cell):
    def __init__(self, network):
        super(PredictWithSigmoid, self).__init__(auto_prefix=False)
        self.network = network
        self.sigmoid = P.Sigmoid()

    def construct(self, batch_ids, batch_wts, labels):
        logits, _, _ = self.network(batch_ids, batch_wts)
        return logits, self.sigmoid(logits), labels


class AUCMetric(Metric):
    def __init__(self):
        super(AUCMetric, self).__init__()
        self.clear()

    def clear(self):
        self.true_labels, self.pred_probs = [], []

    def update(self, *inputs):
        self.pred_probs.extend(inputs[1].asnumpy().flatten().tolist())
        self.true_labels.extend(inputs[2].asnumpy().flatten().tolist())

    def eval(self):
        pairs = [(p, n) for p, t in zip(self.pred_probs, self.true_labels) if t for n, u in zip(self.pred_probs, self.true_labels) if not u]
        return sum(p > n for p, n in pairs) / len(pairs)


def rows():
    random = np.random.RandomState(191)
    for _ in range(4 * BATCH):
        ids = random.randint(0, VOCAB, FIELDS).astype(np.int32)
        yield ids, random.rand(FIELDS).astype(np.float32), np.array([ids[0] > VOCAB // 2], np.float32)


class LossCallback(Callback):
    def step_end(self, run_context):
        loss = run_context.original_args().net_outputs
        report(float(loss.asnumpy()))


class EvalCallback(Callback):
    def __init__(self, model, dataset):
        self.model, self.dataset = model, dataset

    def epoch_end(self, run_context):
        report(self.model.eval(self.dataset, dataset_sink_mode=False)["auc"])


dataset = ds.GeneratorDataset(rows, ["feat_ids", "feat_vals", "label"], shuffle=False).batch(BATCH, drop_remainder=True)
network = begin(DeepFMModel(), 3, 0.5)
loss_net = NetWithLossClass(network)
optimizer = nn.Adam(loss_net.trainable_params(), learning_rate=5e-3, eps=1e-5, loss_scale=4.0)
train_net = nn.TrainOneStepCell(loss_net, optimizer, sens=4.0)
train_net.set_train()
eval_net = PredictWithSigmoid(network)
model = Model(train_net, eval_network=eval_net, metrics={"auc": AUCMetric()})
model.train(2, dataset, callbacks=[LossCallback(), EvalCallback(model, dataset)], dataset_sink_mode=False)
finish(network)
