"""NCF on MovieLens ratings, as research/recommend/ncf of the model zoo: an epoch of 574,000 pairs, batch 4,096, Adam."""
import sys
from pathlib import Path

import numpy as np
import pandas
import torch
from torch import nn

BATCH, NEGATIVES = 4096, 4


class NCF(nn.Module):
    """Matrix factorization of width 16 and a perceptron on embeddings of width 32."""

    def __init__(self, users, items):
        super().__init__()
        self.users, self.items = nn.Embedding(users, 48), nn.Embedding(items, 48)
        self.perceptron = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.head = nn.Linear(32, 1)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.01) if parameter.dim() > 1 else nn.init.zeros_(parameter)

    def forward(self, users, items):
        user, item = self.users(users), self.items(items)
        deep = self.perceptron(torch.cat((user[:, 16:], item[:, 16:]), 1))
        return self.head(torch.cat((user[:, :16] * item[:, :16], deep), 1))[:, 0]


def read_ratings(folder):
    """Return users and items without the last rating of each user, which is for the evaluation; later runs read a cache, as in the zoo."""
    cache = folder / "ratings.npz"
    if cache.exists():
        stored = np.load(cache)
        return stored["users"], stored["items"]
    ratings = pandas.read_csv(folder / "ratings.csv")
    ratings = ratings.groupby("user_id").filter(lambda rows: len(rows) >= 20)
    users, items = ratings["user_id"].factorize()[0], ratings["item_id"].factorize()[0]
    order = np.lexsort((ratings["timestamp"].to_numpy(), users))
    users, items = users[order], items[order]
    is_last = np.append(users[1:] != users[:-1], True)
    np.savez(cache, users=users[~is_last], items=items[~is_last])
    return users[~is_last], items[~is_last]


np.random.seed(1)
torch.manual_seed(1)
users, items = read_ratings(Path(sys.argv[1]) / "ml-1m")
has_rated = np.zeros((6040, 3706), bool)
has_rated[users, items] = True

net = NCF(*has_rated.shape)
print("parameters", sum(parameter.numel() for parameter in net.parameters()))
pairs = len(users) * (1 + NEGATIVES)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.01 + 0.99 * step / 5000)
numbers = np.random.permutation(pairs)
for start in range(0, pairs, BATCH):
    batch = numbers[start:start + BATCH]
    rows, labels = batch % len(users), (batch < len(users)).astype(np.float32)
    batch_users, batch_items = users[rows], np.where(labels, items[rows], np.random.randint(0, has_rated.shape[1], len(rows)))
    while (wrong := has_rated[batch_users, batch_items] & (labels == 0)).any():
        batch_items[wrong] = np.random.randint(0, has_rated.shape[1], wrong.sum())
    predicted = net(torch.from_numpy(batch_users), torch.from_numpy(batch_items))
    loss = nn.functional.binary_cross_entropy_with_logits(predicted, torch.from_numpy(labels))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
print("loss", loss.item())
torch.save(net.state_dict(), "ncf.pt")
