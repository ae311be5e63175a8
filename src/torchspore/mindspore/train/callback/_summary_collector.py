"""`SummaryCollector`: a callback that records the usual data of a training."""
from __future__ import annotations

import re
from typing import Any

import numpy as np

from torchspore.context import effects
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors import dtypes
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.train.callback._callback import Callback, state_of
from torchspore.mindspore.train.summary import SummaryRecord
from torchspore.mindspore.train.summary.arguments import (
    SPECIFIED,
    check_count,
    check_export_options,
    check_folder,
    check_lineage,
    check_specified,
)
from torchspore.observe import summaries
from torchspore.translations import translate

FIRST = 5
"""The number of Parameters that are recorded as histograms without a pattern."""
_FAILED = "Failed"
"""The optimizer of a network that has none."""


class SummaryCollector(Callback):
    """A callback that records the loss, the learning rate, the first images and histograms of Parameters every `collect_freq` steps, and
    the values of summary operators.

    `collect_specified_data` selects: 'collect_metric' and 'collect_input_data' (bools), 'histogram_regular' (a pattern of Parameters'
    names; the first five of the optimizer without one), 'collect_graph' (the network), 'collect_train_lineage' and 'collect_eval_lineage'
    (the parts of the training, and its metrics, with `custom_lineage_data`), 'collect_dataset_graph' (the steps of the data). With
    `keep_default_action=False` only data named there is recorded. Loss landscapes are not drawn, and `explain` reports it. Raises
    TypeError and ValueError for invalid arguments.
    """

    _DEFAULT_SPECIFIED_DATA = SPECIFIED

    def __init__(
        self, summary_dir: str, collect_freq: int = 10, num_process: int = 32, collect_specified_data: dict[str, Any] | None = None,
        keep_default_action: bool = True, custom_lineage_data: dict[str, Any] | None = None, collect_tensor_freq: int | None = None,
        max_file_size: int | None = None, export_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        check_folder("summary_dir", summary_dir)
        check_count("collect_freq", collect_freq)
        check_count("collect_tensor_freq", collect_tensor_freq, is_optional=True)
        check_count("max_file_size", max_file_size, is_optional=True)
        check_export_options(export_options)
        check_lineage(custom_lineage_data)
        specified = check_specified(collect_specified_data, keep_default_action)
        if specified.get("collect_landscape"):
            effects.note("summaries", "SummaryCollector: loss landscapes are not drawn, which needs hundreds of evaluations of the net")
        self._collect_specified_data = {**(self._DEFAULT_SPECIFIED_DATA if keep_default_action else {}), **specified}
        self._every, self._tensors_every = collect_freq, collect_tensor_freq or collect_freq
        self._arguments = {
            "log_dir": summary_dir, "num_process": num_process, "max_file_size": max_file_size, "export_options": export_options,
        }
        self._lineage = dict(custom_lineage_data or {})
        self._temp_optimizer: Any = None
        self._is_parse_loss_success = True
        if self._has_("collect_graph"):
            summaries.expect_graph()
        self._record: SummaryRecord | None = None

    def _has_(self, name: str) -> bool:
        """Return whether a kind of data is recorded."""
        return bool(self._collect_specified_data.get(name))

    def __enter__(self) -> SummaryCollector:
        if self._record is None:                    # the training also enters its callbacks, after the program's `with`
            self._record = SummaryRecord(**self._arguments)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._record is not None:
            self._record.close()
            self._record = None

    def begin(self, run_context: Any) -> None:
        """Opens the record, unless a `with` statement has done so. Raises ValueError if the training has another collector."""
        state = state_of(self, run_context)
        self._check_callbacks(state)
        self.__enter__()
        self._record.set_mode(state.get("mode", "train"))  # type: ignore[union-attr]

    def step_end(self, run_context: Any) -> None:
        """Records a step if it is selected."""
        state = state_of(self, run_context)
        step, record = state.cur_step_num, self._record
        if record is None or state.get("mode", "train") != "train" or (step % self._every and step != 1):
            return
        if self._has_("collect_metric"):
            self._collect_metric(state)
        if self._has_("collect_input_data"):
            self._collect_input_data(state)
        if "histogram_regular" in self._collect_specified_data:
            self._collect_histogram(state)
        with_tensors = not step % self._tensors_every or step == 1
        network = state.get("train_network") if self._has_("collect_graph") else None
        record.record(step, network, plugin_filter=None if with_tensors else lambda plugin: plugin != "tensor")

    def end(self, run_context: Any) -> None:
        """Records the parts of the training, and closes the record."""
        state, record = state_of(self, run_context), self._record
        if state.get("mode", "train") != "train":
            if record is not None and self._has_("collect_eval_lineage"):
                record._add_text_("eval_lineage", {"metrics": state.get("metrics"), "batches": state.get("batch_num")})
            return
        if record is not None:
            if self._has_("collect_train_lineage"):
                record._add_text_("train_lineage", {**_lineage(state), **self._lineage})
            if self._has_("collect_dataset_graph"):
                from torchspore.mindspore.dataset.engine import descriptions  # datasets import callbacks

                data = state.get("train_dataset")
                record._add_text_("dataset_graph", {"steps": descriptions.chain(data)} if data is not None else {})
        self.__exit__()

    @staticmethod
    def _check_callbacks(state: Any) -> None:
        """Raises ValueError for more than one collector among the callbacks."""
        callbacks = state.get("list_callback") or []
        if sum(isinstance(callback, SummaryCollector) for callback in getattr(callbacks, "_callbacks", callbacks)) > 1:
            raise ValueError(translate(
                "There are more than one SummaryCollector instance in callback list,but expected only one SummaryCollector instance."
            ))

    def _collect_metric(self, state: Any) -> None:
        """Store the loss and the learning rate."""
        assert self._record is not None
        loss = self._get_loss(state)
        if loss is not None:
            self._record.add_value("scalar", "loss/auto", loss)
        optimizer = self._get_optimizer(state)
        rate = optimizer.get_lr() if optimizer is not None and hasattr(optimizer, "get_lr") else None
        if isinstance(rate, Tensor):
            self._record.add_value("scalar", "learning_rate/auto", rate)

    def _get_loss(self, state: Any) -> Tensor | None:
        """Return the mean of the first output of a step; None, also in later steps, if it is not a number."""
        if not self._is_parse_loss_success:
            return None
        loss = _loss(state)
        self._is_parse_loss_success = loss is not None
        return None if loss is None else loss.astype(dtypes.float32).mean() if loss.ndim else loss

    def _get_optimizer(self, state: Any) -> Any:
        """Return the optimizer of the training, or the first in its network; None if there is none."""
        if self._temp_optimizer is None:
            network = state.get("train_network") if state.get("mode", "train") == "train" else state.get("eval_network")
            cells = [cell for _, cell in network.cells_and_names()] if network is not None else []
            optimizers = (cell for cell in cells if isinstance(cell, FRONT.optimizer))
            self._temp_optimizer = state.get("optimizer") or next(optimizers, _FAILED)
        return None if isinstance(self._temp_optimizer, str) else self._temp_optimizer

    def _collect_input_data(self, state: Any) -> None:
        """Store the first images of a step. Without data, later steps store none."""
        data = state.get("train_dataset_element")
        if not isinstance(data, (Tensor, list, tuple)) or (isinstance(data, (list, tuple)) and not data):
            self._collect_specified_data["collect_input_data"] = False
            return
        first = data[0] if isinstance(data, (tuple, list)) else data
        if self._record is not None and isinstance(first, Tensor) and first.ndim == 4 and first.shape[1] in (1, 3):
            self._record.add_value("image", "input_data/auto", first)

    def _collect_histogram(self, state: Any) -> None:
        """Store the Parameters of the optimizer whose names fit the pattern; without a pattern the first ones."""
        optimizer, pattern = self._get_optimizer(state), self._collect_specified_data.get("histogram_regular")
        parameters = list(optimizer.parameters) if optimizer is not None else []
        chosen = parameters[:FIRST] if pattern is None else [p for p in parameters if re.match(pattern, p.name)]
        for parameter in chosen:
            self._record.add_value("histogram", f"{parameter.name}/auto", parameter)  # type: ignore[union-attr]


def _lineage(state: Any) -> dict[str, Any]:
    """Return the parts of a training: classes, sizes, the last loss."""
    optimizer = state.get("optimizer") or getattr(state.get("train_network"), "optimizer", None)
    network, data = state.get("network") or state.get("train_network"), state.get("train_dataset")
    rate = optimizer.get_lr() if optimizer is not None and hasattr(optimizer, "get_lr") else None
    loss = _loss(state)
    parameters = list(network.get_parameters()) if network is not None else []
    return {
        "network": _class(network), "loss_function": _class(state.get("loss_fn")), "optimizer": _class(optimizer),
        "learning_rate": float(rate.asnumpy().reshape(-1)[0]) if isinstance(rate, Tensor) else None,
        "epoch": state.get("cur_epoch_num"), "step_num": state.get("cur_step_num"), "batch_num": state.get("batch_num"),
        "batch_size": data.get_batch_size() if data is not None else None,
        "dataset_size": (data.get_dataset_size() or 0) * data.get_batch_size() if data is not None else None,
        "parallel_mode": state.get("parallel_mode"), "device_num": state.get("device_number"),
        "model_size": sum(int(np.prod(p.shape)) * p.itemsize for p in parameters),
        "loss": float(loss.mean().asnumpy()) if loss is not None else None,
    }


def _class(value: Any) -> str | None:
    return None if value is None else type(value).__name__


def _loss(state: Any) -> Tensor | None:
    output = state.get("net_outputs")
    while isinstance(output, (tuple, list)) and output:
        output = output[0]
    if isinstance(output, (int, float)) and not isinstance(output, bool):
        return Tensor(output)
    return output if isinstance(output, Tensor) else None
