"""TextCNN: convolutions of three heights over embedded words, max over time, Model with a loss, an optimizer and a LossMonitor (1.x)."""
import mindspore.dataset as ds
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Model, Tensor, context
from mindspore.nn.cell import Cell
from mindspore.train.callback import Callback

from measured import MODE, begin, finish, report

context.set_context(mode=MODE, device_target="CPU")


def make_conv_layer(kernel_size):
    weight_shape = (8, 1, *kernel_size)
    weight = Tensor(np.random.RandomState(0).uniform(-0.1, 0.1, weight_shape).astype(np.float32))
    return nn.Conv2d(in_channels=1, out_channels=8, kernel_size=kernel_size, padding=0, pad_mode="pad", weight_init=weight, has_bias=True)


class SoftmaxCrossEntropyExpand(Cell):
    def __init__(self, sparse=False):
        super(SoftmaxCrossEntropyExpand, self).__init__()
        self.exp = ops.Exp()
        self.reduce_sum = ops.ReduceSum(keep_dims=True)
        self.onehot = ops.OneHot()
        self.on_value = Tensor(1.0)
        self.off_value = Tensor(0.0)
        self.div = ops.Div()
        self.log = ops.Log()
        self.sum_cross_entropy = ops.ReduceSum(keep_dims=False)
        self.mul = ops.Mul()
        self.mul2 = ops.Mul()
        self.cast = ops.Cast()
        self.reduce_mean = ops.ReduceMean(keep_dims=False)
        self.sparse = sparse
        self.reduce_max = ops.ReduceMax(keep_dims=True)
        self.sub = ops.Sub()
        self.minus_one = Tensor(-1.0)

    def construct(self, logit, label):
        logit_max = self.reduce_max(logit, -1)
        exp = self.exp(self.sub(logit, logit_max))
        exp_sum = self.reduce_sum(exp, -1)
        softmax_result = self.div(exp, exp_sum)
        if self.sparse:
            label = self.onehot(label, ops.shape(logit)[1], self.on_value, self.off_value)
        softmax_result_log = self.log(softmax_result)
        loss = self.sum_cross_entropy(self.mul(softmax_result_log, label), -1)
        loss = self.mul2(self.minus_one, loss)
        return self.reduce_mean(loss, -1)


class TextCNN(nn.Cell):
    def __init__(self, vocab_len, word_len, num_classes, vec_length):
        super(TextCNN, self).__init__()
        self.vec_length = vec_length
        self.word_len = word_len
        self.unsqueeze = ops.ExpandDims()
        self.embedding = nn.Embedding(vocab_len, self.vec_length, embedding_table="normal")
        self.slice = ops.Slice()
        self.layer1 = self.make_layer(kernel_height=3)
        self.layer2 = self.make_layer(kernel_height=4)
        self.layer3 = self.make_layer(kernel_height=5)
        self.concat = ops.Concat(1)
        self.fc = nn.Dense(8 * 3, num_classes)
        self.drop = nn.Dropout(p=0.0)
        self.reducemax = ops.ReduceMax(keep_dims=False)

    def make_layer(self, kernel_height):
        return nn.SequentialCell([make_conv_layer((kernel_height, self.vec_length)), nn.ReLU(),
                                  nn.MaxPool2d(kernel_size=(self.word_len - kernel_height + 1, 1))])

    def construct(self, x):
        x = self.unsqueeze(x, 1)
        x = self.embedding(x)
        x1, x2, x3 = self.layer1(x), self.layer2(x), self.layer3(x)
        x1, x2, x3 = self.reducemax(x1, (2, 3)), self.reducemax(x2, (2, 3)), self.reducemax(x3, (2, 3))
        x = self.concat((x1, x2, x3))
        return self.fc(self.drop(x))


class LossOfStep(Callback):
    def step_end(self, run_context):
        report(run_context.original_args().net_outputs)


def sentences():
    random = np.random.RandomState(131)
    for _ in range(24):
        yield random.randint(1, 40, 12).astype(np.int32), np.int32(random.randint(0, 2))


dataset = ds.GeneratorDataset(lambda: sentences(), ["data", "label"], shuffle=False).batch(4).repeat(1)
learning_rate = [1e-3 * (i + 1) / 3 for i in range(3)] + [1e-3 / (i + 1) for i in range(3)]
net = begin(TextCNN(40, 12, 2, 10), 1)
loss = SoftmaxCrossEntropyExpand(sparse=True)
opt = nn.Adam(filter(lambda x: x.requires_grad, net.get_parameters()), learning_rate=learning_rate, weight_decay=3e-5, eps=1e-5)
model = Model(net, loss_fn=loss, optimizer=opt, metrics={"acc": nn.Accuracy("classification")})
model.train(1, dataset, callbacks=[LossOfStep()], dataset_sink_mode=False)
report(model.eval(dataset, dataset_sink_mode=False)["acc"])
finish(net)
