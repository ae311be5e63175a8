"""Linear fit with a GeneratorDataset and a callback of one's own, as the first 1.x tutorial had it."""
import sys

import numpy as np
from mindspore import Model, Parameter, Tensor, context, nn
from mindspore import dataset as ds
from mindspore.common.initializer import Normal, One, initializer
from mindspore.train.callback import Callback, LossMonitor

context.set_context(mode=context.GRAPH_MODE if "graph" in sys.argv[1:] else context.PYNATIVE_MODE, device_target="CPU")


def get_data(num, w=2.0, b=3.0):
    rng = np.random.RandomState(4)
    for _ in range(num):
        x = rng.uniform(-10.0, 10.0)
        noise = rng.normal(0, 1)
        y = x * w + b + noise
        yield np.array([x]).astype(np.float32), np.array([y]).astype(np.float32)


def create_dataset(num_data, batch_size=16, repeat_size=1):
    input_data = ds.GeneratorDataset(list(get_data(num_data)), column_names=["data", "label"], shuffle=False)
    input_data = input_data.batch(batch_size)
    input_data = input_data.repeat(repeat_size)
    return input_data


class LinearNet(nn.Cell):
    def __init__(self):
        super(LinearNet, self).__init__()
        self.fc = nn.Dense(1, 1, Normal(0.02), Normal(0.02))

    def construct(self, x):
        x = self.fc(x)
        return x


class ShowLine(Callback):
    """Prints the line that is fitted, as the tutorial's picture shows it."""

    def __init__(self, display_net, eval_data):
        self.display_net = display_net
        self.x, self.y = eval_data

    def begin(self, run_context):
        cb_params = run_context.original_args()
        print("begin", cb_params.mode, cb_params.epoch_num, cb_params.batch_num)

    def step_end(self, run_context):
        cb_params = run_context.original_args()
        if cb_params.cur_step_num % 5 == 0:
            weight, bias = self.display_net.trainable_params()
            print("step", cb_params.cur_step_num, "weight: {:.4f} bias: {:.4f}".format(float(weight.asnumpy()[0][0]), float(bias.asnumpy()[0])))

    def end(self, run_context):
        prediction = self.display_net(Tensor(self.x)).asnumpy()
        print("end", round(float(np.mean((prediction - self.y) ** 2)), 4))


data_number = 160
ds_train = create_dataset(data_number, batch_size=16, repeat_size=1)
print("The dataset size of ds_train:", ds_train.get_dataset_size())
dict_datasets = next(ds_train.create_dict_iterator())
print(dict_datasets.keys())
print("The x label value shape:", dict_datasets["data"].shape)
print("The y label value shape:", dict_datasets["label"].shape)

net = LinearNet()
model_params = net.trainable_params()
print([(p.name, p.shape, str(p.dtype), p.requires_grad) for p in model_params])
model_params[0].set_data(initializer(One(), (1, 1)))
model_params[1].set_data(initializer("zeros", [1]))
net_loss = nn.MSELoss()
opt = nn.Momentum(net.trainable_params(), learning_rate=0.005, momentum=0.9)
model = Model(net, net_loss, opt)
evaluation = list(get_data(8))
line = ShowLine(net, (np.stack([x for x, _ in evaluation]), np.stack([y for _, y in evaluation])))
model.train(2, ds_train, callbacks=[line, LossMonitor(10)], dataset_sink_mode=False)
for net_param in net.trainable_params():
    print(net_param.name, np.round(net_param.asnumpy(), 3).tolist())
predict = model.predict(Tensor(np.array([[1.5]], np.float32)))
print(predict.shape, round(float(predict.asnumpy()[0, 0]), 3))
spare = Parameter(initializer("ones", [2, 2]), name="spare")
print(spare.name, spare.asnumpy().tolist())
