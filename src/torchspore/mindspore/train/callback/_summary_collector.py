"""`SummaryCollector`: a callback that records the usual data of a training."""
from __future__ import annotations

import re
from typing import Any

import numpy as np

from torchspore.base.arguments import check_int_type
from torchspore.base.text import list_choices, message, short
from torchspore.context import effects
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.train.callback._callback import Callback, state_of
from torchspore.mindspore.train.summary import SummaryRecord
from torchspore.observe import summaries

COLLECTED = (
    "collect_metric", "collect_graph", "collect_train_lineage", "collect_eval_lineage", "collect_input_data", "collect_dataset_graph",
    "histogram_regular", "collect_landscape",
)
FIRST = 5
"""The number of Parameters with more than one value that are recorded as histograms without a pattern."""


class SummaryCollector(Callback):
    """A callback that records the loss, the learning rate, the first images and histograms of Parameters every `collect_freq` steps, and
    the values of summary operators.

    `collect_specified_data` selects: 'collect_metric' and 'collect_input_data' (bools), 'histogram_regular' (a pattern of Parameters'
    names; the first five without one), 'collect_graph' (the network), 'collect_train_lineage' and 'collect_eval_lineage' (the parts
    of the training, and its metrics, with `custom_lineage_data`), 'collect_dataset_graph' (the steps of the data). With
    `keep_default_action=False` only data named there is recorded. Loss landscapes are not drawn, and `explain` reports it. Raises
    TypeError and ValueError for invalid arguments.
    """

    def __init__(
        self, summary_dir: str, collect_freq: int = 10, num_process: int = 32, collect_specified_data: dict[str, Any] | None = None,
        keep_default_action: bool = True, custom_lineage_data: dict[str, Any] | None = None, collect_tensor_freq: int | None = None,
        max_file_size: int | None = None, export_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(summary_dir, str):
            raise TypeError(message(f"SummaryCollector(summary_dir={short(summary_dir)})", f"a str, got {type(summary_dir).__name__}"))
        for name, count in (("collect_freq", collect_freq), ("collect_tensor_freq", collect_tensor_freq)):
            if count is not None or name == "collect_freq":
                _check_frequency(name, count)
        self._selection = _specified(collect_specified_data, keep_default_action)
        self._every, self._tensors_every = collect_freq, collect_tensor_freq or collect_freq
        self._arguments = {
            "log_dir": summary_dir, "num_process": num_process, "max_file_size": max_file_size, "export_options": export_options,
        }
        is_named = isinstance(custom_lineage_data, dict) and all(isinstance(key, str) for key in custom_lineage_data)
        if custom_lineage_data is not None and not is_named:
            call_text = f"SummaryCollector(custom_lineage_data={short(custom_lineage_data)})"
            raise TypeError(message(call_text, f"a dict with names of str, got {type(custom_lineage_data).__name__}"))
        self._lineage = dict(custom_lineage_data or {})
        if self._selection["collect_graph"]:
            summaries.expect_graph()
        self._record: SummaryRecord | None = None

    def __enter__(self) -> SummaryCollector:
        if self._record is None:                    # the training also enters its callbacks, after the program's `with`
            self._record = SummaryRecord(**self._arguments)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._record is not None:
            self._record.close()
            self._record = None

    def begin(self, run_context: Any) -> None:
        """Opens the record, unless a `with` statement has done so."""
        self.__enter__()
        self._record.set_mode(state_of(self, run_context).get("mode", "train"))  # type: ignore[union-attr]

    def step_end(self, run_context: Any) -> None:
        """Records a step if it is selected."""
        state = state_of(self, run_context)
        step, record = state.cur_step_num, self._record
        if record is None or state.get("mode", "train") != "train" or (step % self._every and step != 1):
            return
        if self._selection["collect_metric"]:
            self._metric_(record, state)
        if self._selection["collect_input_data"]:
            self._input_(record, state)
        if self._selection["histogram_regular"] is not False:
            self._parameters_(record, state)
        with_tensors = not step % self._tensors_every or step == 1
        network = state.get("train_network") if self._selection["collect_graph"] else None
        record.record(step, network, plugin_filter=None if with_tensors else lambda plugin: plugin != "tensor")

    def end(self, run_context: Any) -> None:
        """Records the parts of the training, and closes the record."""
        state, record = state_of(self, run_context), self._record
        if state.get("mode", "train") != "train":
            if record is not None and self._selection["collect_eval_lineage"]:
                record._add_text_("eval_lineage", {"metrics": state.get("metrics"), "batches": state.get("batch_num")})
            return
        if record is not None:
            if self._selection["collect_train_lineage"]:
                record._add_text_("train_lineage", {**_lineage(state), **self._lineage})
            if self._selection["collect_dataset_graph"]:
                from torchspore.mindspore.dataset.engine import descriptions  # datasets import callbacks

                data = state.get("train_dataset")
                record._add_text_("dataset_graph", {"steps": descriptions.chain(data)} if data is not None else {})
        self.__exit__()

    @staticmethod
    def _metric_(record: SummaryRecord, state: Any) -> None:
        output = _loss(state)
        if output is not None:
            record.add_value("scalar", "loss/auto", output.mean() if output.ndim else output)
        optimizer = state.get("optimizer") or getattr(state.get("train_network"), "optimizer", None)
        rate = optimizer.get_lr() if optimizer is not None and hasattr(optimizer, "get_lr") else None
        if isinstance(rate, Tensor):
            record.add_value("scalar", "learning_rate/auto", rate)

    @staticmethod
    def _input_(record: SummaryRecord, state: Any) -> None:
        data = state.get("train_dataset_element")
        first = data[0] if isinstance(data, (tuple, list)) and data else data
        if isinstance(first, Tensor) and first.ndim == 4 and first.shape[1] in (1, 3):
            record.add_value("image", "input_data/auto", first)

    def _parameters_(self, record: SummaryRecord, state: Any) -> None:
        network, pattern = state.get("train_network"), self._selection["histogram_regular"]
        parameters = list(network.trainable_params()) if network is not None else []
        if isinstance(pattern, str):
            chosen = [parameter for parameter in parameters if re.match(pattern, parameter.name)]
        else:
            chosen = [parameter for parameter in parameters if parameter.size > 1][:FIRST]
        for parameter in chosen:
            record.add_value("histogram", f"{parameter.name}/auto", parameter)


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
    return output if isinstance(output, Tensor) else None


def _check_frequency(name: str, count: Any) -> None:
    check_int_type("SummaryCollector", name, count)
    if count < 1:
        raise ValueError(message(f"SummaryCollector({name}={count})", "an int from 1 on"))


def _specified(specified: Any, keeps: Any) -> dict[str, Any]:
    if not isinstance(keeps, bool):
        raise TypeError(message(f"SummaryCollector(keep_default_action={short(keeps)})", "a bool"))
    if specified is not None and not isinstance(specified, dict):
        raise TypeError(message(f"SummaryCollector(collect_specified_data={short(specified)})", f"a dict, got {type(specified).__name__}"))
    specified = specified or {}
    for name, value in specified.items():
        call_text = f"SummaryCollector(collect_specified_data={{{name!r}: {short(value)}}})"
        if name not in COLLECTED:
            raise ValueError(message(call_text, list_choices(COLLECTED)))
        if name == "histogram_regular" and not isinstance(value, (str, type(None))):
            raise TypeError(message(call_text, f"a pattern or None, got {type(value).__name__}"))
        if name not in ("histogram_regular", "collect_landscape") and not isinstance(value, bool):
            raise TypeError(message(call_text, f"a bool, got {type(value).__name__}"))
    if specified.get("collect_landscape"):
        effects.note("summaries", "SummaryCollector: loss landscapes are not drawn, which needs hundreds of evaluations of the net")
    selection: dict[str, Any] = dict.fromkeys([name for name in COLLECTED if name not in ("histogram_regular", "collect_landscape")], keeps)
    selection["histogram_regular"] = None if keeps or "histogram_regular" in specified else False
    return {**selection, **{name: value for name, value in specified.items() if name in selection}}
