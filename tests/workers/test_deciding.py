"""What ends a training or lowers its rate decides alike in all processes, or says that it did not."""
from __future__ import annotations

from typing import Any


def _decisions_of_callbacks(values: list[list[float]]) -> list[Any]:
    """What two callbacks that follow a number of each process come to, after as many epochs as there are values."""
    import mindspore as ms
    from mindspore import communication, nn, train
    from mindspore.train.callback import RunContext

    from torchspore.errors import CommunicationError
    from torchspore.mindspore.train.callback._callback import InternalCallbackParam

    communication.init()
    ms.set_auto_parallel_context(parallel_mode="data_parallel")
    results: list[Any] = []
    for callback in (train.EarlyStopping("acc", patience=1), train.ReduceLROnPlateau("acc", patience=1)):
        optimizer = nn.SGD(nn.Dense(1, 1).trainable_params(), 0.1)
        state = InternalCallbackParam(optimizer=optimizer, cur_epoch_num=0)
        run = RunContext(state)
        callback.on_train_begin(run)
        try:
            for epoch, value in enumerate(values[communication.get_rank()], 1):
                state.cur_epoch_num, state.eval_results = epoch, {"acc": value}
                callback.on_train_epoch_end(run)
            results.append((run.get_stop_requested(), round(float(optimizer.learning_rate.asnumpy()), 4)))
        except CommunicationError as error:
            results.append(str(error).partition(": expected")[0])
    return results


def test_all_decide_alike_or_say_so(workers: Any) -> None:
    assert workers(2, _decisions_of_callbacks, [[0.5, 0.4], [0.6, 0.5]]) == [[(True, 0.1), (False, 0.01)]] * 2
    assert workers(2, _decisions_of_callbacks, [[0.5, 0.4], [0.5, 0.6]]) == [[
        "EarlyStopping: rank 0 ends the training after epoch 2, rank 1 goes on with the training after epoch 2",
        "ReduceLROnPlateau: rank 0 sets the learning rate to 0.01 after epoch 2, rank 1 leaves the learning rate after epoch 2",
    ]] * 2
