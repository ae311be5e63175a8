"""Classes of the program's that train: what they receive or create, their data sets, gradients that a class adds up."""
from __future__ import annotations

from pathlib import Path

import pytest
from support.training_scripts import assert_verified, ported

from torchspore.port import complete_port

RECEIVES = '''class Trainer:
    """Trains a network."""

    def __init__(self, network, loss_fn, optimizer, epochs=2):
        self.network, self.loss_fn, self.epochs = network, loss_fn, epochs
        self.optimizer = optimizer
        self.grad_fn = ms.value_and_grad(self.forward, None, self.optimizer.parameters, has_aux=True)

    def forward(self, x, y):
        logits = self.network(x)
        return self.loss_fn(logits, y), logits

    def train_step(self, x, y):
        (loss, _), grads = self.grad_fn(x, y)
        self.optimizer(grads)
        return loss

    def train(self, dataset):
        self.network.set_train()
        for epoch in range(self.epochs):
            total = 0.0
            for batch in dataset.create_dict_iterator():
                total += float(self.train_step(batch["picture"], batch["label"]).asnumpy())
            print(f"epoch {epoch}: {total / dataset.get_dataset_size():.3f}")

    def evaluate(self, dataset):
        self.network.set_train(False)
        return sum(int((self.network(x).argmax(axis=1) == y).sum()) for x, y in dataset.create_tuple_iterator())


data = ds.NumpySlicesDataset({"picture": pictures, "label": labels}, shuffle=False).batch(8)
trainer = Trainer(net, loss_fn, nn.Adam(net.trainable_params(), 0.01))
trainer.train(data)
print(trainer.evaluate(data))
'''
CREATES = """class Rows:
    def __getitem__(self, index):
        return pictures[index], labels[index]

    def __len__(self):
        return len(pictures)


class Trainer(object):
    def __init__(self, config):
        self.config = config
        self.net = Net()
        self.optimizer = nn.Momentum(self.net.trainable_params(), RATE, 0.9)
        self.data = ds.GeneratorDataset(Rows(), ["x", "y"], shuffle=False).batch(8)
        self.step = nn.TrainOneStepCell(nn.WithLossCell(self.net, nn.CrossEntropyLoss()), self.optimizer)
        self.step.set_train()

    def fit(self):
        for _ in range(self.config["epochs"]):
            for x, y in self.data.create_tuple_iterator():
                self.step(x, y)


trainer = Trainer({"lr": 0.1, "epochs": 2})
trainer.fit()
"""


def test_a_trainer_that_receives_network_loss_and_optimizer(tmp_path: Path) -> None:
    outcome = ported(tmp_path, RECEIVES)
    assert_verified(outcome)
    text = outcome.ported.text
    assert "apply_gradients(self.optimizer, grads)" in text and "weights=parameters_of(self.optimizer)" in text
    assert "for batch in (dict(zip(['picture', 'label'], columns)) for columns in dataset):" in text
    assert "for x, y in dataset)" in text and "total / len(dataset)" in text


def test_a_trainer_that_creates_what_it_needs(tmp_path: Path) -> None:
    outcome = ported(tmp_path, CREATES.replace("RATE", 'config["lr"]'))
    assert_verified(outcome)
    text = outcome.ported.text
    assert 'self.optimizer = optim.SGD(self.net.parameters(), lr=config["lr"], momentum=0.9)' in text
    assert "for x, y in self.data:" in text and "DataLoader(Rows(), batch_size=8)" in text


def test_the_optimizer_of_a_trainer_follows_a_schedule(tmp_path: Path) -> None:
    text = CREATES.replace("RATE", "nn.cosine_decay_lr(0.0, 0.1, 6, 3, 2)")
    outcome = ported(tmp_path, text)
    assert_verified(outcome)
    assert "self.optimizer = with_schedule(optim.SGD(self.net.parameters(), lr=1.0, momentum=0.9)," in outcome.ported.text


@pytest.mark.parametrize(("change", "text"), [
    (("nn.TrainOneStepCell(nn.WithLossCell(self.net, nn.CrossEntropyLoss()), self.optimizer)", "Model(self.net)"), "Model in a class"),
    (('ds.GeneratorDataset(Rows(), ["x", "y"], shuffle=False)', 'ds.TFRecordDataset("rows")'), "TFRecordDataset"),
])
def test_what_a_trainer_cannot_have(change: tuple[str, str], text: str, tmp_path: Path) -> None:
    outcome = ported(tmp_path, CREATES.replace("RATE", "0.1").replace(*change))
    problems = [*outcome.ported.problems, *outcome.ported.by_hand]
    assert any(text in problem.text for problem in problems), problems


def test_data_sets_of_one_parameter_that_have_other_columns(tmp_path: Path) -> None:
    other = 'trainer.train(ds.NumpySlicesDataset({"image": pictures, "label": labels}, shuffle=False).batch(8))\n'
    outcome = ported(tmp_path, RECEIVES + other)
    problems = [*outcome.ported.problems, *outcome.ported.by_hand]
    assert any("data sets that are read in several ways" in problem.text for problem in problems), problems


def test_gradients_that_a_class_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "scripts/programs"))
    program = Path(__file__).parents[2] / "scripts/programs/idioms/accumulation.py"
    outcome = complete_port.port_file(str(program), with_script=True)
    assert_verified(outcome)
    assert "self.weights = parameters_of(optimizer)" in outcome.ported.text
    assert "success = apply_gradients(self.optimizer, self.grad_sum)" in outcome.ported.text
