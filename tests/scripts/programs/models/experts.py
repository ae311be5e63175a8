"""A mixture of experts with the best two of four, capacity and a balance loss; low-rank adapters beside frozen weights, merged at the end."""
import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops
from mindspore.common.initializer import HeUniform, initializer

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)


class Experts(nn.Cell):
    def __init__(self, width, hidden, count, best=2):
        super().__init__()
        self.router = nn.Dense(width, count, has_bias=False)
        self.up = Parameter(initializer(HeUniform(), (count, width, hidden)), name="up")
        self.down = Parameter(initializer(HeUniform(), (count, hidden, width)), name="down")
        self.count, self.best = count, best

    def construct(self, x):
        probabilities = ops.softmax(self.router(x), axis=-1)
        weights, chosen = ops.topk(probabilities, self.best, dim=-1)
        weights = weights / weights.sum(-1, keepdims=True)
        hot = ops.one_hot(chosen, self.count, Tensor(1.0, ms.float32), Tensor(0.0, ms.float32))
        slot = ops.cumsum(hot.sum(1), 0) - 1
        keep = (slot < 3).astype(ms.float32)
        gate = (hot * weights.expand_dims(-1)).sum(1) * keep
        h = mint.nn.functional.silu(mint.matmul(x, self.up))
        out = mint.bmm(h, self.down).swapaxes(0, 1)
        balance = self.count * (hot.sum(1).mean(0) / self.best * probabilities.mean(0)).sum()
        return (out * gate.expand_dims(-1)).sum(1), balance


class LoRA(nn.Cell):
    def __init__(self, dense, rank=2, alpha=4.0, dropout=0.0):
        super().__init__()
        self.dense = dense
        for p in dense.get_parameters():
            p.requires_grad = False
        out_size, in_size = dense.weight.shape
        self.lora_a = Parameter(initializer("normal", (rank, in_size), ms.float32), name="lora_a")
        self.lora_b = Parameter(initializer("zeros", (out_size, rank), ms.float32), name="lora_b")
        self.scale, self.drop = alpha / rank, nn.Dropout(p=dropout)

    def construct(self, x):
        return self.dense(x) + mint.matmul(mint.matmul(self.drop(x), self.lora_a.swapaxes(0, 1)), self.lora_b.T) * self.scale

    def merge(self):
        self.dense.weight.set_data(self.dense.weight + ops.matmul(self.lora_b, self.lora_a) * self.scale)
        return self.dense


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embed, self.experts, self.head = nn.Dense(5, 6), Experts(6, 8, 4), nn.Dense(6, 3)

    def construct(self, x, y):
        h = self.embed(x)
        out, balance = self.experts(h)
        return ops.cross_entropy(self.head(h + out), y) + 0.01 * balance


def adapt(cell):
    for name, child in cell.name_cells().items():
        if isinstance(child, nn.Dense) and name != "router":
            cell._cells[name] = LoRA(child)
        else:
            adapt(child)
    return cell


random = np.random.RandomState(10)
x, y = Tensor(random.randn(9, 5), ms.float32), Tensor(random.randint(0, 3, 9), ms.int32)
net = begin(Net(), 5, 0.8)
optimizer = nn.AdamWeightDecay(net.trainable_params(), 0.01, weight_decay=0.1)
grad_fn = ms.value_and_grad(net, None, net.trainable_params())


def step():
    loss, grads = grad_fn(x, y)
    optimizer(grads)
    return loss


train(step, net)

adapt(net)
net.update_parameters_name("m.")
net.head.lora_b.set_data(Tensor(random.randn(3, 2) * 0.1, ms.float32))
net.head.lora_a.set_data(Tensor(random.randn(2, 6) * 0.1, ms.float32))
net.embed.lora_a.set_data(Tensor(random.randn(2, 5) * 0.1, ms.float32))
trained = [p for p in net.trainable_params() if "lora" in p.name]
print([p.name for p in trained])
trainer = nn.TrainOneStepCell(net, nn.AdamWeightDecay(trained, 0.02))
train(lambda: trainer(x, y), net)
before = net(x, y)
merged = Net()
weights = {name.replace("m.", "", 1).replace("dense.", ""): value for name, value in net.parameters_dict().items() if "lora" not in name}
net.head.merge()
net.embed.merge()
ms.load_param_into_net(merged, weights)
report(before, merged(x, y))
