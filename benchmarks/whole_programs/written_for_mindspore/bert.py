"""Fine-tuning of a BERT encoder (four layers, width 256, 64 tokens) on 160 sentences: AdamWeightDecay with warmup, a functional step."""
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from execution import EPOCHS, IS_GRAPH
from mindspore import nn, ops

WIDTH, HEADS, LENGTH, WORDS = 256, 4, 64, 4000


class Layer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Dense(WIDTH, WIDTH) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,))
        self.wide, self.narrow = nn.Dense(WIDTH, 4 * WIDTH), nn.Dense(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(p=0.1)

    def split_heads(self, x):
        return x.reshape(x.shape[0], x.shape[1], HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    def construct(self, x, mask):
        query, key, value = self.split_heads(self.query(x)), self.split_heads(self.key(x)), self.split_heads(self.value(x))
        scores = ops.matmul(query, key.transpose(0, 1, 3, 2)) / (WIDTH // HEADS) ** 0.5 + mask
        mixed = ops.matmul(self.dropout(ops.softmax(scores, -1)), value).transpose(0, 2, 1, 3).reshape(x.shape)
        x = self.norm1(x + self.dropout(self.out(mixed)))
        return self.norm2(x + self.dropout(self.narrow(ops.gelu(self.wide(x)))))


class Classifier(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.norm = nn.LayerNorm((WIDTH,))
        self.layers = nn.CellList([Layer() for _ in range(4)])
        self.head = nn.Dense(WIDTH, 3)
        self.indices = ms.Tensor(np.arange(LENGTH), ms.int32)

    def construct(self, tokens, mask):
        x = self.norm(self.words(tokens) + self.positions(self.indices))
        mask = (1.0 - mask.reshape(mask.shape[0], 1, 1, LENGTH)) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x[:, 0])


rows = np.random.default_rng(0)
tokens = rows.integers(0, WORDS, (160, LENGTH)).astype(np.int32)
mask = (np.arange(LENGTH) < rows.integers(16, LENGTH, (160, 1))).astype(np.float32)
labels = (tokens[:, 1] % 3).astype(np.int32)

ms.set_seed(1)
dataset = ds.NumpySlicesDataset((tokens, mask, labels), ["tokens", "mask", "label"], shuffle=True).batch(16)
net = Classifier()
steps = dataset.get_dataset_size() * EPOCHS
rates = [5e-5 * min(1.0, (step + 1) / 10) * (1 - step / steps) for step in range(steps)]
optimizer = nn.AdamWeightDecay(net.trainable_params(), rates, weight_decay=0.01)
loss_function = nn.CrossEntropyLoss()


def forward(tokens, mask, label):
    return loss_function(net(tokens, mask), label)


gradient_function = ms.value_and_grad(forward, None, optimizer.parameters)


def train_step(tokens, mask, label):
    loss, gradients = gradient_function(tokens, mask, label)
    gradients = ops.clip_by_global_norm(gradients, 1.0)
    optimizer(gradients)
    return loss


if IS_GRAPH:
    train_step = ms.jit(train_step)
net.set_train()
for _ in range(EPOCHS):
    for batch in dataset.create_tuple_iterator():
        loss = train_step(*batch)
    print("loss", float(loss.asnumpy()))
