"""The quick start of the 2.x tutorials: a functional training loop with value_and_grad."""
import sys

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.dataset import NumpySlicesDataset, transforms

ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[1:] else ms.PYNATIVE_MODE)
ms.set_seed(3)
rng = np.random.RandomState(0)


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.dense_relu_sequential = nn.SequentialCell(
            nn.Dense(12 * 12, 64),
            nn.ReLU(),
            nn.Dense(64, 64),
            nn.ReLU(),
            nn.Dense(64, 10),
        )

    def construct(self, x):
        x = self.flatten(x)
        logits = self.dense_relu_sequential(x)
        return logits


def datapipe(images, labels, batch_size):
    dataset = NumpySlicesDataset((images, labels), column_names=["image", "label"], shuffle=False)
    dataset = dataset.map(lambda image: (image / 255.0).astype(np.float32), "image")
    dataset = dataset.map(transforms.TypeCast(ms.int32), "label")
    return dataset.batch(batch_size)


centres = rng.randint(0, 255, (10, 1, 12, 12))
labels = rng.randint(0, 10, 320)
images = np.clip(centres[labels] + rng.randint(-40, 40, (320, 1, 12, 12)), 0, 255).astype(np.uint8)
train_dataset = datapipe(images[:256], labels[:256], 64)
test_dataset = datapipe(images[256:], labels[256:], 50)

model = Network()
print(model)
for param in model.get_parameters():
    value = rng.normal(0, 0.1, param.shape) if param.ndim > 1 else np.zeros(param.shape)
    param.set_data(ms.Tensor(value.astype(np.float32)))

loss_fn = nn.CrossEntropyLoss()
optimizer = nn.SGD(model.trainable_params(), 5e-2)


def forward_fn(data, label):
    logits = model(data)
    loss = loss_fn(logits, label)
    return loss, logits


grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)


def train_step(data, label):
    (loss, _), grads = grad_fn(data, label)
    optimizer(grads)
    return loss


def train(model, dataset):
    size = dataset.get_dataset_size()
    model.set_train()
    for batch, (data, label) in enumerate(dataset.create_tuple_iterator()):
        loss = train_step(data, label)
        if batch % 2 == 0:
            loss, current = loss.asnumpy(), batch
            print(f"loss: {loss:>7f}  [{current:>3d}/{size:>3d}]")


def test(model, dataset, loss_fn):
    num_batches = dataset.get_dataset_size()
    model.set_train(False)
    total, test_loss, correct = 0, 0, 0
    for data, label in dataset.create_tuple_iterator():
        pred = model(data)
        total += len(data)
        test_loss += loss_fn(pred, label).asnumpy()
        correct += (pred.argmax(1) == label).asnumpy().sum()
    test_loss /= num_batches
    correct /= total
    print(f"Test: \n Accuracy: {(100*correct):>0.1f}%, Avg loss: {test_loss:>8f} \n")


for t in range(3):
    print(f"Epoch {t+1}\n-------------------------------")
    train(model, train_dataset)
    test(model, test_dataset, loss_fn)
ms.save_checkpoint(model, "model.ckpt")
model = Network()
param_dict = ms.load_checkpoint("model.ckpt")
param_not_load, _ = ms.load_param_into_net(model, param_dict)
print(param_not_load)
test(model, test_dataset, loss_fn)
print("Done!")
