"""Cells in the training loops of Lightning and Hugging Face, and Modules of timm and transformers in `Model`."""
from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn, ops
from support import torchvision_operators
from torch.utils.data import DataLoader, TensorDataset

import torchspore

X = np.random.default_rng(0).standard_normal((16, 3, 8, 8)).astype(np.float32)
Y = np.arange(16, dtype=np.int64) % 3
pytestmark = pytest.mark.filterwarnings("default")           # of these libraries


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dense(4, 3)

    def construct(self, x: Any) -> Any:
        return self.head(ops.relu(self.norm(self.conv(x))).mean((2, 3)))


def loader() -> DataLoader[Any]:
    return DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), batch_size=4)


def trained_by_hand(net: nn.Cell, epochs: int) -> dict[str, np.ndarray]:
    """The values after a loop of torch."""
    module = torchspore.as_module(net).train()
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    for _ in range(epochs):
        for x, y in loader():
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(x), y).backward()
            optimizer.step()
    return {name: value.asnumpy().copy() for name, value in net.parameters_dict().items()}


@pytest.mark.needs("lightning")
def test_lightnings_trainer(tmp_path: Path) -> None:
    torchvision_operators.declare()
    import lightning

    class Task(lightning.LightningModule):
        def __init__(self, net: nn.Cell) -> None:
            super().__init__()
            self.model = torchspore.as_module(net).train()            # Lightning keeps the modes that it finds

        def training_step(self, batch: Any, _: int) -> Any:
            return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])

        def validation_step(self, batch: Any, _: int) -> None:
            assert not self.model.training
            self.log("loss", torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1]))

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    ms.set_seed(1)
    net = Net()
    expected = trained_by_hand(copy.deepcopy(net), 2)
    task = Task(net)
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=True,
                                default_root_dir=tmp_path)
    trainer.fit(task, loader(), loader())
    for name, value in net.parameters_dict().items():
        np.testing.assert_array_equal(value.asnumpy(), expected[name])
    trainer.save_checkpoint(tmp_path / "task.ckpt")
    other = Task(Net())
    other.load_state_dict(torch.load(tmp_path / "task.ckpt", weights_only=True)["state_dict"])
    np.testing.assert_array_equal(other.model.cell.head.weight.asnumpy(), net.head.weight.asnumpy())
    assert trainer.validate(task, loader(), verbose=False)[0]["loss"] > 0


@pytest.mark.needs("lightning")
def test_lightning_with_rows_of_mindspore(tmp_path: Path) -> None:
    torchvision_operators.declare()
    import lightning

    class Task(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.rows = torchspore.as_module(Net()), 0

        def training_step(self, batch: Any, _: int) -> Any:
            self.rows += len(batch[0])
            return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1].long())

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    data = ms.dataset.NumpySlicesDataset((X, Y.astype(np.int32)), shuffle=True)
    task = Task()
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False, enable_checkpointing=False,
                                default_root_dir=tmp_path)
    trainer.fit(task, DataLoader(torchspore.as_iterable(data), batch_size=4, num_workers=2))
    assert task.rows == 2 * len(X)


@pytest.mark.needs("transformers", "accelerate")
def test_hugging_faces_trainer(tmp_path: Path) -> None:
    torchvision_operators.declare()
    from transformers import Trainer, TrainingArguments

    class WithLoss(nn.Cell):
        """The result of a Cell for this Trainer: loss and logits."""

        def __init__(self, net: nn.Cell) -> None:
            super().__init__()
            self.net, self.loss = net, nn.CrossEntropyLoss()

        def construct(self, pixels: Any, labels: Any) -> Any:
            logits = self.net(pixels)
            return self.loss(logits, labels.astype(ms.int32)), logits

    ms.set_seed(1)
    net = Net()
    model = torchspore.as_module(WithLoss(net))
    rows = [{"pixels": torch.from_numpy(x), "labels": torch.tensor(y), "name": "unused"} for x, y in zip(X, Y)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = TrainingArguments(
            output_dir=str(tmp_path), max_steps=30, per_device_train_batch_size=8, learning_rate=0.05, report_to=[], use_cpu=True,
            label_names=["labels"], disable_tqdm=True, save_strategy="steps", save_steps=30,
        )
        trainer = Trainer(model, arguments, train_dataset=rows, eval_dataset=rows)
        before = trainer.evaluate()["eval_loss"]
        trainer.train()
        assert trainer.evaluate()["eval_loss"] < before
        assert trainer.predict(rows).predictions.shape == (16, 3)
        resumed = Trainer(torchspore.as_module(WithLoss(Net())), arguments, train_dataset=rows)
        resumed._load_from_checkpoint(str(tmp_path / "checkpoint-30"))
    np.testing.assert_array_equal(resumed.model.net.cell.head.weight.asnumpy(), net.head.weight.asnumpy())


@pytest.mark.needs("accelerate")
def test_accelerate() -> None:
    from accelerate import Accelerator

    ms.set_seed(1)
    net = Net()
    expected = trained_by_hand(copy.deepcopy(net), 1)
    accelerator = Accelerator(cpu=True)
    module = torchspore.as_module(net)
    model, optimizer, data = accelerator.prepare(module, torch.optim.SGD(module.parameters(), 0.1), loader())
    model.train()
    for x, y in data:
        optimizer.zero_grad()
        accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
        optimizer.step()
    for name, value in net.parameters_dict().items():
        np.testing.assert_array_equal(value.asnumpy(), expected[name])


@pytest.mark.needs("timm", "torchvision")
@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_transformer_of_timm_in_model_train(mode: int) -> None:
    torchvision_operators.declare()
    import timm

    torch.manual_seed(1)
    ms.set_context(mode=mode)
    vit = timm.create_model("vit_tiny_patch16_224", img_size=8, patch_size=4, depth=2, embed_dim=12, num_heads=2, num_classes=3)
    twin = copy.deepcopy(vit).train()
    cell = torchspore.as_cell(vit)
    ms.train.Model(cell, torch.nn.CrossEntropyLoss(), nn.SGD(cell.trainable_params(), 0.1)).train(1, loader())
    optimizer = torch.optim.SGD(twin.parameters(), 0.1)
    for x, y in loader():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(twin(x), y).backward()
        optimizer.step()
    for name, value in twin.state_dict().items():
        torch.testing.assert_close(vit.state_dict()[name], value, rtol=1e-4, atol=1e-6)


@pytest.mark.needs("transformers")
@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_model_of_transformers_as_a_part_of_a_cell(mode: int) -> None:
    torchvision_operators.declare()
    from transformers import BertConfig, BertModel

    class Classifier(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(1)
            self.bert = BertModel(BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
                                             hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
            self.head = nn.Dense(8, 2)

        def construct(self, ids: Any) -> Any:
            return self.head(self.bert(ids, return_dict=False)[1])

    ms.set_context(mode=mode)
    ms.set_seed(1)
    net = Classifier()
    data = DataLoader(TensorDataset(torch.arange(32).reshape(8, 4) % 9, torch.arange(8) % 2), batch_size=4)
    losses = ms.train.Model(net, torch.nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 1e-2))
    before = net.bert.module.embeddings.word_embeddings.weight.detach().clone()
    losses.train(2, data)
    assert not torch.equal(net.bert.module.embeddings.word_embeddings.weight, before)
    assert "bert.encoder.layer.0.attention.self.query.weight" in [parameter.name for parameter in net.trainable_params()]
