"""Sentiment of 3,200 sentences of 40 words: embedding, two-layer LSTM, Adam."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 3


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(2000, 64)
        self.lstm = nn.LSTM(64, 128, num_layers=2, batch_first=True)
        self.head = nn.Linear(128, 2)

    def forward(self, words):
        out, _ = self.lstm(self.embedding(words))
        return self.head(out[:, -1])


rows = np.random.default_rng(0)
sentences = rows.integers(0, 2000, (3200, 40)).astype(np.int32)
labels = (sentences[:, :8].mean(1) > 1000).astype(np.int64)

torch.manual_seed(1)
loader = DataLoader(TensorDataset(torch.from_numpy(sentences), torch.from_numpy(labels)), batch_size=64, shuffle=True)
net = Sentiment()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(EPOCHS):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
net.eval()
with torch.no_grad():
    print("accuracy", sum((net(x).argmax(1) == y).sum().item() for x, y in loader) / len(labels))
