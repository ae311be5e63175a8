"""Sentiment of 3,200 sentences of 40 words: embedding, two-layer LSTM, Adam, `Model.train`."""
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from execution import EPOCHS
from mindspore import nn


class Sentiment(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(2000, 64)
        self.lstm = nn.LSTM(64, 128, num_layers=2, batch_first=True)
        self.head = nn.Dense(128, 2)

    def construct(self, words):
        out, _ = self.lstm(self.embedding(words))
        return self.head(out[:, -1])


rows = np.random.default_rng(0)
sentences = rows.integers(0, 2000, (3200, 40)).astype(np.int32)
labels = (sentences[:, :8].mean(1) > 1000).astype(np.int32)

ms.set_seed(1)
dataset = ds.NumpySlicesDataset((sentences, labels), ["words", "label"], shuffle=True).batch(64)
net = Sentiment()
model = ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 1e-3), metrics={"accuracy"})
model.train(EPOCHS, dataset, callbacks=[ms.LossMonitor(50)], dataset_sink_mode=False)
print("accuracy", model.eval(dataset, dataset_sink_mode=False)["accuracy"])
