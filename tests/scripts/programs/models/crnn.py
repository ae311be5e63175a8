"""CRNN with CTC (1.x): conv, BatchNorm, bidirectional nn.LSTM over columns, P.CTCLoss, greedy decoding, warm-up by piecewise constants, nn.SGD nesterov, DistributedGradReducer-free own cell, gradient clip by global norm."""
import numpy as np
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, context, ParameterTuple
from mindspore.ops import composite as C, functional as F, operations as P
from measured import MODE, begin, train

context.set_context(mode=MODE, device_target="CPU")


class CRNN(nn.Cell):
    def __init__(self, classes):
        super(CRNN, self).__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, pad_mode="same", has_bias=True)
        self.bn1 = nn.BatchNorm2d(4, use_batch_statistics=None)
        self.pool1 = nn.MaxPool2d((2, 2), (2, 2), pad_mode="valid")
        self.conv2 = nn.Conv2d(4, 8, (3, 3), pad_mode="same")
        self.norm2 = nn.GroupNorm(2, 8)
        self.pool2 = nn.MaxPool2d((4, 1), (4, 1))
        self.rnn = nn.LSTM(8, 6, num_layers=2, has_bias=True, batch_first=False, bidirectional=True, dropout=0.0)
        self.fc = nn.Dense(12, classes)
        self.squeeze, self.transpose = P.Squeeze(2), P.Transpose()
        self.h = Tensor(np.zeros((4, 3, 6)).astype(np.float32))

    def construct(self, x):
        x = self.pool1(P.ReLU()(self.bn1(self.conv1(x))))
        x = self.pool2(P.ReLU()(self.norm2(self.conv2(x))))
        x = self.transpose(self.squeeze(x), (2, 0, 1))
        x, _ = self.rnn(x, (self.h, self.h))
        return self.fc(x)


class CTCLoss(nn.Cell):
    def __init__(self, steps, batch, length):
        super(CTCLoss, self).__init__(auto_prefix=False)
        self.sequence_length = ms.Parameter(Tensor(np.full(batch, steps, np.int32)), name="sequence_length", requires_grad=False)
        indices = [[i, j] for i in range(batch) for j in range(length)]
        self.label_indices = ms.Parameter(Tensor(np.array(indices), ms.int64), name="label_indices", requires_grad=False)
        self.reshape = P.Reshape()
        self.ctc_loss = P.CTCLoss(preprocess_collapse_repeated=False, ctc_merge_repeated=True)

    def construct(self, logit, label):
        labels_values = self.reshape(label, (-1,))
        loss, _ = self.ctc_loss(logit, self.label_indices, labels_values, self.sequence_length)
        return loss


class Step(nn.Cell):
    def __init__(self, network, optimizer, sens=2.0):
        super(Step, self).__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.grad = C.GradOperation(get_by_list=True, sens_param=True)
        self.sens = sens

    def construct(self, data, label):
        loss = self.network(data, label)
        sens = P.OnesLike()(loss) * self.sens
        grads = self.grad(self.network, self.weights)(data, label, sens)
        grads = C.clip_by_global_norm(grads, 5.0)
        return F.depend(loss, self.optimizer(grads))


net = begin(CRNN(7))
lr = nn.piecewise_constant_lr([2, 4, 12], [0.05, 0.02, 0.01])
opt = nn.SGD(params=net.trainable_params(), learning_rate=lr, momentum=0.9, nesterov=True, weight_decay=1e-4, loss_scale=2.0)
step = Step(nn.WithLossCell(net, CTCLoss(8, 3, 3)), opt)
step.set_train()
rng = np.random.RandomState(9)
x, y = Tensor(rng.rand(3, 1, 8, 16).astype(np.float32)), Tensor(rng.randint(0, 6, (3, 3)).astype(np.int32))
train(lambda: step(x, y), net)
net.set_train(False)
out = net(x)
decoded, _ = P.CTCGreedyDecoder()(P.LogSoftmax()(out), Tensor(np.full(3, 8, np.int32)))[1:3]
print(decoded.asnumpy().tolist())
