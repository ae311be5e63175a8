"""The loops of `Model` over epochs and batches, in methods with MindSpore's names: a program's Model may override each of them.

`train` and `fit` call `_train`, which calls `_train_process`, or `_train_dataset_sink_process` on a device with a data queue; `eval`
and the evaluations of `fit` call `_eval_process` or `_eval_dataset_sink_process`. Both kinds get their batches by `_exec_preprocess`.
"""
from __future__ import annotations

import contextlib
from typing import Any

from torchspore.base.text import message
from torchspore.context.store import STORE
from torchspore.distributed.data_parallel import parameter_broadcast, settings
from torchspore.engine.execution.training_start import TRAINING_START
from torchspore.engine.tensors import tree
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.wrap.cell_wrapper import WithEvalCell
from torchspore.mindspore.train import progress
from torchspore.mindspore.train.callback._callback import CallbackManager, InternalCallbackParam, RunContext, _handle_loss, set_cur_net
from torchspore.mindspore.train.callback._checkpoint_counters import counters_of
from torchspore.mindspore.train.callback._loss_monitor import LossMonitor
from torchspore.mindspore.train.dataset_helper import DatasetHelper
from torchspore.mindspore.train.metrics import Loss


class ModelLoops:
    """The loops of a Model over its train and eval network."""

    _network: Cell
    _train_network: Cell
    _eval_network: Cell | None
    _loss_fn: Any
    _optimizer: Any
    _metric_fns: dict[str, Any]
    _eval_indexes_: list[int] | None
    _keywords_: dict[str, Any]

    @property
    def _loss_scale_manager(self) -> Any:
        return self._keywords_.get("loss_scale_manager")

    # Training ----------------------------------------------------------------------------------------------------------------------------

    def _train(
        self, epoch: int, train_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = True, sink_size: int = -1,
        initial_epoch: int = 0, valid_dataset: Any = None, valid_frequency: Any = 1, valid_dataset_sink_mode: bool = True,
    ) -> None:
        """Trains with checked arguments."""
        if TRAINING_START.hook is not None:
            TRAINING_START.hook()
        steps = train_dataset.get_dataset_size()
        if steps == 0:
            raise ValueError(message("Model.train(train_dataset=...)", "a dataset with rows; this one has none"))
        state = InternalCallbackParam(
            train_network=self._train_network, epoch_num=epoch - initial_epoch, mode="train", loss_fn=self._loss_fn,
            optimizer=self._optimizer, loss_scale_mananger=self._loss_scale_manager, parallel_mode=settings.mode(),
            device_number=settings.device_num(), network=self._network,
            batch_num=sink_size if dataset_sink_mode and sink_size > 0 else steps, train_dataset=train_dataset,
            dataset_sink_mode=dataset_sink_mode, cur_step_num=0, last_save_ckpt_step=None, latest_ckpt_file=None, initial_step=None,
            train_dataset_element=None, list_callback=list(CallbackManager(callbacks)._callbacks),
        )
        settings.check()
        parameter_broadcast.begin(self._train_network.get_parameters())
        valid = (valid_dataset, valid_frequency, valid_dataset_sink_mode)
        with CallbackManager(callbacks) as called:
            if _sinks(dataset_sink_mode):
                self._train_dataset_sink_process(epoch, train_dataset, called, state, sink_size, initial_epoch, valid)
            else:
                self._train_process(epoch, train_dataset, called, state, initial_epoch, valid)

    def _train_dataset_sink_process(
        self, epoch: int, train_dataset: Any, list_callback: Any = None, cb_params: Any = None,
        sink_size: int = -1,                               # noqa: ARG002  callbacks are called at each step, whatever it is
        initial_epoch: int = 0, valid_infos: Any = None,
    ) -> None:
        """Run the epochs with a data queue on the device; here each step receives its batch, so that callbacks see each."""
        self._train_epochs_(epoch, train_dataset, list_callback, cb_params, initial_epoch, valid_infos)

    def _train_process(
        self, epoch: int, train_dataset: Any, list_callback: Any = None, cb_params: Any = None, initial_epoch: int = 0,
        valid_infos: Any = None,
    ) -> None:
        """Run the epochs, batch by batch; `valid_infos` are the dataset to evaluate on, the frequency, and the sink mode."""
        self._train_epochs_(epoch, train_dataset, list_callback, cb_params, initial_epoch, valid_infos)

    def _train_epochs_(self, epoch: int, dataset: Any, called: Any, state: Any, initial_epoch: int, valid_infos: Any) -> None:
        # set_init_step skips epochs of the data that an earlier training used.
        skipped = getattr(dataset, "get_init_step", int)() // max(dataset.get_dataset_size(), 1)
        helper, _ = self._exec_preprocess(True, dataset, False, epoch_num=epoch - initial_epoch + skipped)
        valid_dataset, frequency, sinks = valid_infos or (None, 1, False)
        run, batches = RunContext(state), getattr(helper, "_batches", None)
        bar = None if batches is None else progress.bar(state, batches)
        try:
            with bar or contextlib.nullcontext():
                called.on_train_begin(run)
                for number in range(initial_epoch + 1, epoch + 1):
                    self._train_epoch_(number, helper, called, run, state, bar)
                    is_due = valid_dataset is not None and self._should_eval(number, frequency)
                    if is_due and not run.get_stop_requested():
                        self._eval_in_fit(valid_dataset, state.list_callback, sinks, state)
                    called.on_train_epoch_end(run)
                    state.pop("eval_results", None)
                    state.pop("metrics", None)
                    if run.get_stop_requested():
                        break
                called.on_train_end(run)
        finally:
            if batches is not None:
                batches.stop()

    def _train_epoch_(self, number: int, helper: Any, called: Any, run: RunContext, state: Any, bar: Any) -> None:
        state.cur_epoch_num = number
        set_cur_net(self._train_network)
        self._check_network_mode(self._train_network, True)
        called.on_train_epoch_begin(run)
        for batch in helper:
            self._check_batch_("train_dataset", batch)
            state.cur_step_num += 1
            self._store_training_step_info(state)
            state.train_dataset_element = batch
            called.on_train_step_begin(run)
            state.net_outputs = self._train_network(*batch)
            called.on_train_step_end(run)
            if bar is not None:
                bar.step(state)
            if run.get_stop_requested():
                break

    def _store_training_step_info(self, cb_params: Any) -> None:
        """Publish the number of the step in the context, if the training has a ModelCheckpoint."""
        counters = counters_of(cb_params.list_callback)
        if counters is not None:
            counters.begin_step(cb_params.cur_step_num)

    def _check_batch_(self, name: str, batch: Any) -> None:
        if self._loss_fn is not None and len(batch) != 2:
            hint = "join the columns in a map, or leave loss_fn out and let the network compute the loss"
            raise ValueError(message(f"Model with loss_fn: {name} has {len(batch)} columns", "two, data and label", hint=hint))

    def _exec_preprocess(
        self, is_train: bool, dataset: Any, dataset_sink_mode: bool, sink_size: int = -1, epoch_num: int = 1, dataset_helper: Any = None,
    ) -> tuple[Any, Cell]:
        """Return the batches of a dataset, one epoch for each loop over them, and the network for them, in training mode or not."""
        network = self._train_network if is_train else self._eval_network
        assert network is not None
        network.set_train(is_train)
        return dataset_helper or DatasetHelper(dataset, dataset_sink_mode, sink_size, epoch_num), network

    def _check_network_mode(self, network: Cell, is_train: bool) -> Cell:
        """Return the network in the requested mode."""
        return network.set_train(is_train)

    def _flush_from_cache(self, cb_params: Any) -> None:
        """Write back Parameters with cached rows; there are none."""

    @staticmethod
    def _should_eval(epoch: int, validation_freq: Any) -> bool:
        """Return whether `fit` evaluates after this epoch, by a frequency or a list of epochs."""
        return epoch % validation_freq == 0 if isinstance(validation_freq, int) else epoch in validation_freq

    # Evaluation --------------------------------------------------------------------------------------------------------------------------

    def _eval_in_fit(self, valid_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = True, cb_params: Any = None) -> None:
        """Evaluate after an epoch of `fit`; the losses of these steps are not printed."""
        state = InternalCallbackParam(cb_params)
        quiet = [callback for callback in tree.listed(callbacks or []) if not isinstance(callback, LossMonitor)]
        results = self._evaluate_(valid_dataset, quiet, dataset_sink_mode, state, add_eval_loss=True)
        cb_params.metrics = results
        # EarlyStopping and ReduceLROnPlateau monitor 'eval_loss', which exists for any metrics.
        cb_params.eval_results = {**results, **state.get("eval_results", {})}

    def _evaluate_(
        self, dataset: Any, callbacks: Any, sink: bool, state: InternalCallbackParam, add_eval_loss: bool = False,
    ) -> dict[str, Any]:
        """Return the metrics; in `fit`, `state` is a copy of the training's state."""
        state.update(
            eval_network=self._eval_network, valid_dataset=dataset, batch_num=dataset.get_dataset_size(), mode="eval", cur_step_num=0,
            list_callback=list(CallbackManager(callbacks)._callbacks), network=self._network, dataset_sink_mode=sink,
        )
        self._clear_metrics()
        with CallbackManager(callbacks) as called:
            process = self._eval_dataset_sink_process if _sinks(sink) else self._eval_process
            return process(dataset, called, state, add_eval_loss)

    def _eval_dataset_sink_process(
        self, valid_dataset: Any, list_callback: Any = None, cb_params: Any = None, add_eval_loss: bool = False,
    ) -> dict[str, Any]:
        """Return the metrics with a data queue on the device; here each step receives its batch."""
        return self._eval_batches_(valid_dataset, list_callback, cb_params, add_eval_loss)

    def _eval_process(
        self, valid_dataset: Any, list_callback: Any = None, cb_params: Any = None, add_eval_loss: bool = False,
    ) -> dict[str, Any]:
        """Compute the metrics, batch by batch."""
        return self._eval_batches_(valid_dataset, list_callback, cb_params, add_eval_loss)

    def _eval_batches_(self, dataset: Any, called: Any, state: Any, add_eval_loss: bool) -> dict[str, Any]:
        run = RunContext(state)
        helper, network = self._exec_preprocess(False, dataset, False)
        try:
            called.on_eval_begin(run)
            called.on_eval_epoch_begin(run)
            for batch in helper:
                if self._loss_fn is not None and isinstance(self._eval_network, WithEvalCell):
                    self._check_batch_("valid_dataset", batch)
                state.cur_step_num += 1
                state.eval_dataset_element = batch
                called.on_eval_step_begin(run)
                state.net_outputs = _from_all_stages(network(*batch))
                self._update_metrics(state.net_outputs)
                called.on_eval_step_end(run)
                if run.get_stop_requested():
                    break
            called.on_eval_epoch_end(run)
            state.metrics = self._get_metrics()
            if add_eval_loss:
                state.eval_results = {"eval_loss": _handle_loss(state.get("net_outputs"))}
            called.on_eval_end(run)
        finally:
            if hasattr(helper, "stop_send"):
                helper.stop_send()
        return state.metrics  # type: ignore[no-any-return]

    def _clear_metrics(self) -> None:
        for metric in self._metric_fns.values():
            metric.clear()

    def _get_metrics(self) -> dict[str, Any]:
        return {name: metric.eval() for name, metric in self._metric_fns.items()}

    def _update_metrics(self, outputs: Any) -> None:
        values = tree.listed(outputs)
        for metric in self._metric_fns.values():
            if self._eval_indexes_:
                loss, predicted, label = self._eval_indexes_
                metric.update(values[loss]) if isinstance(metric, Loss) else metric.update(values[predicted], values[label])
            else:
                metric.update(*values)


def _sinks(is_requested: bool) -> bool:
    """Return whether the sink mode applies: the CPU has no data queue, as in MindSpore."""
    return is_requested and STORE.get("device_target") != "CPU"


def _from_all_stages(outputs: Any) -> Any:
    """Return the values for metrics and callbacks: every stage of a pipeline gets the results of one stage."""
    if not any(isinstance(leaf, Tensor) and "_sharded_layout" in leaf.__dict__ for leaf in tree.listed(outputs)):
        return outputs
    from torchspore.distributed.shard import gather

    return tree.mapped(outputs, gather.broadcast_from_stage)
