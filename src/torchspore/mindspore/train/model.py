"""`Model`: trains, evaluates and predicts."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from torchspore.base.arguments import check_bool, check_int, check_type
from torchspore.base.text import list_choices, message, short
from torchspore.distributed.data_parallel import settings
from torchspore.engine.tensors import torch_interop
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.optim import Optimizer
from torchspore.mindspore.nn.wrap.cell_wrapper import WithEvalCell, WithLossCell
from torchspore.mindspore.train import amp
from torchspore.mindspore.train.callback._callback import InternalCallbackParam
from torchspore.mindspore.train.metrics import get_metrics
from torchspore.mindspore.train.model_loops import ModelLoops
from torchspore.mindspore.train.plain_datasets import batches_of, check_dataset

Method = TypeVar("Method", bound=Callable[..., Any])
_KEYWORDS = ("loss_scale_manager", "keep_batchnorm_fp32", "boost_config_dict", "acc_level")


def _as_its_network_says(method: Method) -> Method:
    """Applies the settings of the Model's network to the context while a method runs, if the network is an AutoParallel."""
    @functools.wraps(method)
    def run(self: Model, *args: Any, **kwargs: Any) -> Any:
        from torchspore.mindspore.parallel.auto_parallel import settings_of

        with settings_of(self._network):
            return method(self, *args, **kwargs)

    return run  # type: ignore[return-value]


class Model(ModelLoops):
    """A network with its loss, optimizer and metrics.

    `metrics` is a set of names or a dict from name to Metric; they are computed from (loss, outputs, label), or from the outputs of
    `eval_network`, in which `eval_indexes` are the indexes of these three. `amp_level` is the level of mixed precision. `boost_level`
    'O1' and 'O2', or `acc_level`, trains by `boost.AutoBoost(boost_level, boost_config_dict)` if there are metrics or an `eval_network`.
    Further arguments: `loss_scale_manager`, `keep_batchnorm_fp32`. Raises TypeError and ValueError for invalid arguments.
    """

    _boost_level_ = "O0"

    def __init__(
        self, network: Cell, loss_fn: Any = None, optimizer: Any = None, metrics: Any = None, eval_network: Cell | None = None,
        eval_indexes: list[int] | None = None, amp_level: str = "O0", boost_level: str = "O0", **kwargs: Any,
    ) -> None:
        check_type("Model", "network", network, Cell, "a Cell")
        if optimizer is not None:
            _check_optimizer(optimizer)
        if eval_network is not None:
            check_type("Model", "eval_network", eval_network, Cell, "a Cell")
        self._amp_level, self._boost_level_ = amp_level, kwargs.get("acc_level", boost_level)
        self._check_kwargs(kwargs)
        self._process_amp_args(kwargs)
        network, optimizer, eval_network = amp.boosted(
            network, optimizer, eval_network, metrics is not None, self._boost_level_, kwargs.get("boost_config_dict", ""),
        )
        self._network, self._loss_fn, self._optimizer = network, loss_fn, optimizer
        self._train_network = self._build_train_network()
        self._build_eval_network(metrics, eval_network, eval_indexes)
        self._build_predict_network()
        for cell in (self._train_network, self._eval_network):
            if cell is not None and cell is not network and network.jit_config_dict:
                cell.set_jit_config(network.jit_config_dict)

    # Overriding __init__ methods of subclasses call these by MindSpore's names.

    def _check_kwargs(self, kwargs: dict[str, Any]) -> None:
        amp.check_level("Model", self._amp_level)
        amp.check_boost("Model", self._boost_level_)
        for name in kwargs:
            if name not in _KEYWORDS:
                raise ValueError(message(f"Model({name}=...)", f"an argument that Model has, such as {list_choices(_KEYWORDS)}"))
        if kwargs.get("loss_scale_manager") is not None:
            amp.check_manager("Model", kwargs["loss_scale_manager"])
        if kwargs.get("keep_batchnorm_fp32") is not None:
            check_bool("Model", "keep_batchnorm_fp32", kwargs["keep_batchnorm_fp32"])

    def _process_amp_args(self, kwargs: dict[str, Any]) -> None:
        self._keywords_ = {name: kwargs[name] for name in ("loss_scale_manager", "keep_batchnorm_fp32") if name in kwargs}

    @property
    def train_network(self) -> Cell:
        """Returns the Cell of one training step."""
        return self._train_network

    @property
    def eval_network(self) -> Cell | None:
        """Returns the Cell of one evaluation step, None without metrics."""
        return self._eval_network

    @property
    def predict_network(self) -> Cell:
        """Returns the network for prediction."""
        return self._predict_network

    def _build_train_network(self) -> Cell:
        if self._optimizer is not None:
            return amp.build_train_network(
                self._network, self._optimizer, self._loss_fn, self._amp_level, self._boost_level_, **self._keywords_
            )
        amp.lower_precision(self._network, self._amp_level, self._keywords_.get("keep_batchnorm_fp32"))
        return self._network if self._loss_fn is None else WithLossCell(self._network, self._loss_fn)

    def _build_eval_network(self, metrics: Any, eval_network: Cell | None, eval_indexes: Any) -> None:
        self._metric_fns = get_metrics(metrics)
        self._eval_indexes_ = _eval_indexes(eval_indexes)
        self._eval_network = eval_network
        if eval_network is not None or not self._metric_fns:
            return
        if self._loss_fn is None:
            hint = "write Model(network, loss_fn, metrics=...)"
            raise ValueError(message("Model(metrics=...) without eval_network or loss_fn", "one of the two, to evaluate with", hint=hint))
        self._eval_indexes_ = [0, 1, 2]
        self._eval_network = WithEvalCell(self._network, self._loss_fn, self._amp_level in ("O2", "O3"))

    def _build_predict_network(self) -> None:
        self._predict_network = self._network

    # Training ----------------------------------------------------------------------------------------------------------------------------

    @_as_its_network_says
    def train(
        self,
        epoch: int,
        train_dataset: Any,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Trains from `initial_epoch` up to `epoch` epochs; `callbacks` are called per step, also with `dataset_sink_mode`.

        Raises TypeError and ValueError for invalid arguments, ValueError for a dataset without rows or with more columns than data and
        label.
        """
        train_dataset = torch_interop.converted_data(train_dataset)
        self._check_train_("Model.train", epoch, train_dataset, dataset_sink_mode, sink_size, initial_epoch)
        self._train(epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch)

    @_as_its_network_says
    def fit(
        self, epoch: int, train_dataset: Any, valid_dataset: Any = None, valid_frequency: Any = 1, callbacks: Any = None,
        dataset_sink_mode: bool = False, valid_dataset_sink_mode: bool = False, sink_size: int = -1, initial_epoch: int = 0,
    ) -> None:
        """Trains like `train` and evaluates on `valid_dataset` after every `valid_frequency` epochs, or after the epochs in a list."""
        train_dataset, valid_dataset = map(torch_interop.converted_data, (train_dataset, valid_dataset))
        self._check_train_("Model.fit", epoch, train_dataset, dataset_sink_mode, sink_size, initial_epoch)
        check_bool("Model.fit", "valid_dataset_sink_mode", valid_dataset_sink_mode)
        if valid_dataset is not None:
            check_dataset("Model.fit", "valid_dataset", valid_dataset)
            if not self._metric_fns:
                raise ValueError(
                    message(
                        "Model.fit(valid_dataset=...) of a Model without metrics", "metrics", hint="write Model(..., metrics={'accuracy'})"
                    )
                )
            _check_frequency(valid_frequency)
        self._train(
            epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch, valid_dataset, valid_frequency,
            valid_dataset_sink_mode,
        )

    def _check_train_(self, call: str, epoch: Any, dataset: Any, sink: Any, sink_size: Any, initial_epoch: Any) -> None:
        check_int(call, "epoch", epoch, 1)
        check_bool(call, "dataset_sink_mode", sink)
        check_int(call, "initial_epoch", initial_epoch, 0)
        if initial_epoch >= epoch:
            raise ValueError(message(f"{call}(epoch={epoch}, initial_epoch={initial_epoch})", "an initial_epoch below epoch"))
        _check_sink_size(call, sink_size)
        check_dataset(call, "train_dataset", dataset)

    # Evaluation --------------------------------------------------------------------------------------------------------------------------

    @_as_its_network_says
    def eval(self, valid_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False) -> dict[str, Any]:
        """Returns the metrics of a dataset, by name. Raises ValueError without metrics and for a dataset without rows."""
        valid_dataset = torch_interop.converted_data(valid_dataset)
        check_bool("Model.eval", "dataset_sink_mode", dataset_sink_mode)
        check_dataset("Model.eval", "valid_dataset", valid_dataset)
        if not self._metric_fns:
            raise ValueError(message("Model.eval of a Model without metrics", "metrics", hint="write Model(..., metrics={'accuracy'})"))
        return self._evaluate_(valid_dataset, callbacks, dataset_sink_mode, InternalCallbackParam())

    # The rest ----------------------------------------------------------------------------------------------------------------------------

    @_as_its_network_says
    def predict(self, *predict_data: Any, backend: str | None = None, config: Any = None) -> Any:
        """Returns the network's output for the Tensors. Raises TypeError for arrays."""
        if backend is not None:
            raise ValueError(message(f"Model.predict(backend={backend!r})", "None: other backends are not in torchspore"))
        for value in predict_data:
            _check_input(value)
        self._predict_network.set_train(False)
        return self._predict_network(*predict_data)

    @_as_its_network_says
    def build(
        self, train_dataset: Any = None, valid_dataset: Any = None, sink_size: int = -1, epoch: int = 1, sink_mode: bool = True
    ) -> None:
        """In GRAPH_MODE, captures the graphs of the training and evaluation step for the first batch, before the first step.

        `sink_size`, `epoch` and `sink_mode` are those of the following training; no data are read ahead. Raises TypeError and ValueError
        for invalid arguments, ValueError without a dataset, and for a `valid_dataset` of a Model without metrics.
        """
        check_int("Model.build", "epoch", epoch, 1)
        check_bool("Model.build", "sink_mode", sink_mode)
        _check_sink_size("Model.build", sink_size)
        if train_dataset is None and valid_dataset is None:
            raise ValueError(message("Model.build()", "train_dataset, valid_dataset, or both"))
        if valid_dataset is not None and self._eval_network is None:
            raise ValueError(message("Model.build(valid_dataset=...) of a Model without metrics", "metrics",
                                     hint="write Model(..., metrics={'accuracy'})"))
        if train_dataset is not None:
            self._compile_("Model.build", "train_dataset", train_dataset, self._train_network, True)
        if valid_dataset is not None and self._eval_network is not None:
            self._compile_("Model.build", "valid_dataset", valid_dataset, self._eval_network, False)

    def _compile_(self, call: str, name: str, dataset: Any, network: Cell, is_training: bool) -> None:
        dataset = torch_interop.converted_data(dataset)
        check_dataset(call, name, dataset)
        if dataset.get_dataset_size() == 0:
            raise ValueError(message(f"{call}({name}=...)", "a dataset with rows; this one has none"))
        batch = _first_batch(dataset)
        if is_training or isinstance(network, WithEvalCell):
            self._check_batch_(name, batch)
        if _is_graph_mode():
            network.set_train(is_training)
            network.compile(*batch)

    @_as_its_network_says
    def infer_predict_layout(self, *predict_data: Any, skip_backend_compile: bool = False) -> dict[str, Any]:
        """Returns the layout of each Parameter in prediction: the `parameter_layout_dict` of the network's graph, which is captured.

        `predict` runs the captured graph, with and without `skip_backend_compile`. Raises RuntimeError in a mode that does not split
        operators and in PYNATIVE_MODE, TypeError for arrays.
        """
        check_bool("Model.infer_predict_layout", "skip_backend_compile", skip_backend_compile)
        _check_splits("Model.infer_predict_layout")
        for value in predict_data:
            _check_input(value, "Model.infer_predict_layout")
        self._predict_network.set_train(False)
        self._predict_network.compile(*predict_data)
        return self._predict_network.parameter_layout_dict

    @_as_its_network_says
    def infer_train_layout(self, train_dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1) -> dict[str, Any]:
        """Returns the layout of each Parameter in a training step: its graph is captured for the first batch, and nothing runs.

        `dataset_sink_mode` must be True, as in MindSpore; the result is valid for both. Raises RuntimeError in a mode that does not split
        operators and in PYNATIVE_MODE, TypeError and ValueError for invalid arguments.
        """
        call = "Model.infer_train_layout"
        _check_splits(call)
        check_bool(call, "dataset_sink_mode", dataset_sink_mode)
        if not dataset_sink_mode:
            raise ValueError(message(f"{call}(dataset_sink_mode=False)", "True: the result is valid for both"))
        _check_sink_size(call, sink_size)
        self._compile_(call, "train_dataset", train_dataset, self._train_network, True)
        return self._train_network.parameter_layout_dict


def _check_splits(call: str) -> None:
    """Raises RuntimeError if nothing would be split: in another parallel mode, and outside of graphs."""
    if settings.mode() not in ("semi_auto_parallel", "auto_parallel"):
        raise RuntimeError(message(f"{call} in parallel_mode={settings.mode()!r}", "'semi_auto_parallel' or 'auto_parallel'"))
    if not _is_graph_mode():
        raise RuntimeError(message(f"{call} in PYNATIVE_MODE", "GRAPH_MODE", hint="write set_context(mode=GRAPH_MODE)"))


def _check_sink_size(call: str, sink_size: Any) -> None:
    check_type(call, "sink_size", sink_size, int, "an int")
    if sink_size < -1 or sink_size == 0:
        raise ValueError(message(f"{call}(sink_size={sink_size})", "-1 or an int from 1"))


def _check_optimizer(optimizer: Any) -> None:
    """Raises TypeError unless it is an optimizer or a wrapper of one, such as `nn.AdaSumByGradWrapCell` and `boost.FreezeOpt`."""
    if not (isinstance(optimizer, Cell) and hasattr(optimizer, "parameters")):
        check_type("Model", "optimizer", optimizer, Optimizer, "an optimizer")


def _eval_indexes(indexes: Any) -> list[int] | None:
    if indexes is None:
        return None
    if not isinstance(indexes, list) or len(indexes) != 3:
        raise ValueError(message(f"Model(eval_indexes={short(indexes)})", "the indexes of loss, output and label: a list of three ints"))
    return indexes


def _check_frequency(frequency: Any) -> None:
    for epoch in frequency if isinstance(frequency, (list, tuple)) else [frequency]:
        check_int("Model.fit", "valid_frequency", epoch, 1)


def _check_input(value: Any, call: str = "Model.predict") -> None:
    inside: Iterator[Any] = (
        iter(value.values()) if isinstance(value, dict) else iter(value) if isinstance(value, (tuple, list)) else iter((value,))
    )
    for item in inside:
        if item is not None and not isinstance(item, (Tensor, int, float, str)):
            raise TypeError(message(f"{call} of {type(item).__name__}", "Tensors", hint="write mindspore.Tensor(array)"))


def _is_graph_mode() -> bool:
    from torchspore.context.store import STORE

    return STORE.graph_mode


def _first_batch(dataset: Any) -> list[Any]:
    batches = batches_of(dataset, 1)
    try:
        return next(iter(batches))
    finally:
        batches.stop()
