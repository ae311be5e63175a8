"""Fine-tuning of a BERT encoder (four layers, width 256, 64 tokens) on 160 sentences: AdamW with warmup."""
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 3
WIDTH, HEADS, LENGTH, WORDS = 256, 4, 64, 4000


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def split_heads(self, x):
        return x.reshape(x.shape[0], x.shape[1], HEADS, WIDTH // HEADS).transpose(1, 2)

    def forward(self, x, mask):
        query, key, value = self.split_heads(self.query(x)), self.split_heads(self.key(x)), self.split_heads(self.value(x))
        mixed = F.scaled_dot_product_attention(query, key, value, mask, 0.1 if self.training else 0.0).transpose(1, 2).reshape(x.shape)
        x = self.norm1(x + self.dropout(self.out(mixed)))
        return self.norm2(x + self.dropout(self.narrow(F.gelu(self.wide(x)))))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(4))
        self.head = nn.Linear(WIDTH, 3)
        self.register_buffer("indices", torch.arange(LENGTH))

    def forward(self, tokens, mask):
        x = self.norm(self.words(tokens) + self.positions(self.indices))
        mask = (1.0 - mask[:, None, None]) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x[:, 0])


rows = np.random.default_rng(0)
tokens = rows.integers(0, WORDS, (160, LENGTH)).astype(np.int32)
mask = (np.arange(LENGTH) < rows.integers(16, LENGTH, (160, 1))).astype(np.float32)
labels = (tokens[:, 1] % 3).astype(np.int64)

torch.manual_seed(1)
loader = DataLoader(TensorDataset(*map(torch.from_numpy, (tokens, mask, labels))), batch_size=16, shuffle=True)
net = Classifier()
steps = len(loader) * EPOCHS
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-5, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10) * (1 - step / steps))
for _ in range(EPOCHS):
    for x, m, y in loader:
        loss = F.cross_entropy(net(x, m), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    print("loss", loss.item())
