"""Plain Python classes as datasets of `Model`: MindSpore 2.10 calls the methods that these tests record, in this order."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Model, Tensor, nn
from mindspore.train import DatasetHelper


class Rows:
    """Three batches; the class is its own iterator."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self._position = 0

    def __iter__(self) -> Rows:
        return self

    def __next__(self) -> tuple[Tensor, Tensor]:
        if self._position == 3:
            raise StopIteration
        self._position += 1
        return Tensor(np.full((4, 3), self._position, np.float32)), Tensor(np.ones((4, 2), np.float32))

    def reset(self) -> None:
        self.calls.append("reset")
        self._position = 0

    def get_dataset_size(self) -> int:
        return 3

    def create_tuple_iterator(self, num_epochs: int = 1, do_copy: bool = True) -> Any:
        self.calls.append((num_epochs, do_copy))
        return self


class OldRows(Rows):
    """As classes of 1.x wrote it: the iterator takes no arguments."""

    def create_tuple_iterator(self) -> Any:  # type: ignore[override]
        return self


class WithoutRestart(Rows):
    """`reset` does not restart the iterator."""

    def create_tuple_iterator(self, **_: Any) -> Any:
        return iter([super(WithoutRestart, self).__next__() for _ in range(3)])


class Count(ms.train.Callback):
    """Counts steps."""

    def __init__(self) -> None:
        self.steps = 0

    def on_train_step_end(self, run_context: Any) -> None:
        self.steps += 1


def _model() -> Model:
    net = nn.Dense(3, 2)
    return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), metrics={"loss"})


@pytest.mark.parametrize("sinks", [False, True])
@pytest.mark.parametrize("mode", [0, 1])
def test_training_takes_each_epoch_and_resets_after_it(mode: int, sinks: bool) -> None:
    ms.set_context(mode=mode)
    rows, count = Rows(), Count()
    _model().train(2, rows, callbacks=[count], dataset_sink_mode=sinks)
    assert (count.steps, rows.calls) == (6, [(2, False), "reset", "reset"])


def test_evaluation_and_helper() -> None:
    rows = Rows()
    assert _model().eval(rows)["loss"] > 0
    assert rows.calls == [(1, False), "reset"]
    helper = DatasetHelper(OldRows(), dataset_sink_mode=False, epoch_num=2)
    assert [float(data.asnumpy()[0, 0]) for _ in range(2) for data, _ in helper] == [1, 2, 3, 1, 2, 3]
    assert helper.sink_size() == 3


def test_old_iterators_without_arguments() -> None:
    count = Count()
    _model().train(2, OldRows(), callbacks=[count], dataset_sink_mode=False)
    assert count.steps == 6


def test_an_epoch_without_batches_is_reported() -> None:
    count = Count()
    with pytest.warns(UserWarning, match="WithoutRestart has no batch in this epoch"):
        _model().train(2, WithoutRestart(), callbacks=[count], dataset_sink_mode=False)
    assert count.steps == 3


@pytest.mark.parametrize(("missing", "text"), [
    ("reset", r"of a class without reset: expected a Dataset, or a class with create_tuple_iterator, get_dataset_size and reset"),
    ("get_dataset_size", "of a class without get_dataset_size"),
])
def test_missing_methods_are_named(missing: str, text: str) -> None:
    rows = type("Partial", (Rows,), {missing: None})()
    with pytest.raises(TypeError, match=text):
        _model().train(1, rows)


def test_a_list_is_not_an_iterator() -> None:
    rows = type("Listed", (Rows,), {"create_tuple_iterator": lambda self: [1, 2]})()
    with pytest.raises(TypeError, match=r"Listed.create_tuple_iterator\(\) returned \[1, 2\]: expected an iterator, got list"):
        _model().train(1, rows)
