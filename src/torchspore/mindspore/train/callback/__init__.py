"""Callbacks of a training."""
from __future__ import annotations

from torchspore.mindspore.train.callback import _callback
from torchspore.mindspore.train.callback._callback import (
    Callback,
    CallbackManager,
    InternalCallbackParam,
    RunContext,
    _CallbackManager,
    _handle_loss,
    _InternalCallbackParam,
    _set_cur_net,
)
from torchspore.mindspore.train.callback._checkpoint import CheckpointConfig, ModelCheckpoint
from torchspore.mindspore.train.callback._flops_collector import FlopsUtilizationCollector
from torchspore.mindspore.train.callback._history import History, LambdaCallback
from torchspore.mindspore.train.callback._learning_rate import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau
from torchspore.mindspore.train.callback._loss_monitor import LossMonitor
from torchspore.mindspore.train.callback._saved_state import BackupAndRestore, OnRequestExit
from torchspore.mindspore.train.callback._summary_collector import SummaryCollector
from torchspore.mindspore.train.callback._time_monitor import TimeMonitor
from torchspore.public_names import missing

__all__ = [
    "BackupAndRestore", "Callback", "CheckpointConfig", "EarlyStopping",
    "FlopsUtilizationCollector", "History", "LambdaCallback", "LearningRateScheduler", "LossMonitor", "ModelCheckpoint",
    "OnRequestExit",    "ReduceLROnPlateau", "RunContext", "SummaryCollector", "TimeMonitor",
]

__getattr__ = missing(__name__)
