"""Linear regression three ways: nn.Dense with Model.train, gradients by hand with GradOperation, and the normal equation (courses, 1.x)."""
import numpy as np
from mindspore import Model, Parameter, Tensor, context, nn
from mindspore import dataset as ds
from mindspore.common.initializer import Normal
from mindspore.ops import composite as C
from mindspore.ops import operations as P
from mindspore.train.callback import Callback

from measured import MODE, begin, finish, report

context.set_context(mode=MODE, device_target="CPU")


def get_data(num, w=2.0, b=3.0):
    random = np.random.RandomState(271)
    for _ in range(num):
        x = random.uniform(-10.0, 10.0)
        yield np.array([x]).astype(np.float32), np.array([x * w + b + random.normal(0, 1)]).astype(np.float32)


class LinearNet(nn.Cell):
    def __init__(self):
        super(LinearNet, self).__init__()
        self.fc = nn.Dense(1, 1, Normal(0.02), Normal(0.02))

    def construct(self, x):
        return self.fc(x)


class Show(Callback):
    def step_end(self, run_context):
        report(run_context.original_args().net_outputs)


class MyLoss(nn.Cell):
    def __init__(self, network):
        super(MyLoss, self).__init__()
        self.network, self.mean, self.square = network, P.ReduceMean(), P.Square()

    def construct(self, data, label):
        return self.mean(self.square(self.network(data) - label)) * 0.5


class ByHand(nn.Cell):
    """Descends along the gradient with assignments of its own."""

    def __init__(self, network, rate):
        super(ByHand, self).__init__(auto_prefix=False)
        self.network, self.rate = network, rate
        self.weights = list(network.trainable_params())
        self.w, self.b = self.weights
        from mindspore import ParameterTuple
        self.weights = ParameterTuple(self.weights)
        self.grad = C.GradOperation(get_by_list=True)
        self.assign_sub = P.AssignSub()

    def construct(self, data, label):
        loss = self.network(data, label)
        gradient = self.grad(self.network, self.weights)(data, label)
        self.assign_sub(self.w, gradient[0] * self.rate)
        self.assign_sub(self.b, gradient[1] * self.rate)
        return loss


dataset = ds.GeneratorDataset(list(get_data(48)), column_names=["data", "label"], shuffle=False).batch(16)
net = begin(LinearNet())
opt = nn.Momentum(net.trainable_params(), learning_rate=0.005, momentum=0.9)
Model(net, nn.MSELoss(), opt).train(1, dataset, callbacks=[Show()], dataset_sink_mode=False)
finish(net)
step = ByHand(MyLoss(net), 0.01)
for data, label in dataset.create_tuple_iterator():
    report(step(data, label))
finish(net)
x, y = (np.stack(column) for column in zip(*get_data(48)))
design = Tensor(np.hstack([x, np.ones_like(x)]))
gram = P.MatMul(transpose_a=True)(design, design)
solution = P.MatMul()(P.MatrixInverse()(gram), P.MatMul(transpose_a=True)(design, Tensor(y)))
spare = Parameter(Tensor(np.zeros((2, 1), np.float32)), name="solution")
P.Assign()(spare, solution)
report(spare)
