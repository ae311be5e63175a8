"""TextCNN on movie reviews, as research/nlp/textcnn of the model zoo: 4 epochs of 2,880 sentences, batch 64, Adam with weight decay."""
import random
import re
import sys
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, LENGTH, WIDTH = 4, 51, 40


class TextCNN(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embedding = nn.Embedding(words, WIDTH)
        self.convolutions = nn.ModuleList(nn.Conv2d(1, 96, (height, WIDTH), padding=1) for height in (3, 4, 5))
        self.pools = nn.ModuleList(nn.MaxPool2d((LENGTH - height + 1, 1), stride=1) for height in (3, 4, 5))
        self.dropout, self.head = nn.Dropout(0.5), nn.Linear(3 * 96, 2)
        nn.init.uniform_(self.embedding.weight, -0.07, 0.07)
        for layer in (*self.convolutions, self.head):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)

    def forward(self, words):
        x = self.embedding(words)[:, None]
        parts = [pool(torch.relu(convolution(x))).amax((2, 3)) for convolution, pool in zip(self.convolutions, self.pools)]
        return self.head(self.dropout(torch.cat(parts, 1)))


def read_sentences(path):
    """Return the sentences of a file as lists of words."""
    with open(path, encoding="utf-8") as lines:
        return [re.sub("[^a-z ]", "", line).split() for line in lines]


random.seed(1)
torch.manual_seed(1)
folder, vocabulary, rows = Path(sys.argv[1]), {}, []
for label, kind in ((1, "pos"), (0, "neg")):
    sentences = read_sentences(folder / f"rt-polarity.{kind}")
    tenth = len(sentences) // 10
    for number, sentence in enumerate(sentences):
        indices = [vocabulary.setdefault(word, len(vocabulary)) for word in sentence[:LENGTH]]
        if not 2 * tenth <= number < 3 * tenth:            # the third tenth is the test set
            rows.append((indices + [0] * (LENGTH - len(indices)), label))
random.shuffle(rows)
tokens, labels = (torch.tensor(column) for column in zip(*rows))
loader = DataLoader(TensorDataset(tokens, labels), batch_size=64, drop_last=True)
net = TextCNN(len(vocabulary))
print("parameters", sum(parameter.numel() for parameter in net.parameters()))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=3e-5)
for epoch in range(EPOCHS):
    for step, (x, y) in enumerate(loader):
        if epoch == 3:                                     # the schedule of the zoo's program
            optimizer.param_groups[0]["lr"] = 1e-3 / (16 if step % 2 == 0 else 32)
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
    torch.save(net.state_dict(), "textcnn.pt")
