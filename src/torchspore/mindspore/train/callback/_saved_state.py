"""Callbacks that save a training's state on disk: for resuming it, and when the user requests its end."""
from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from torchspore.base.arguments import check_bool, is_int
from torchspore.base.text import message, short
from torchspore.mindspore.communication import get_rank
from torchspore.mindspore.train.callback._callback import Callback, RunContext, state_of
from torchspore.mindspore.train.export import export
from torchspore.mindspore.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint


class BackupAndRestore(Callback):
    """Saves the Parameters in `backup_dir`/backup.ckpt after every `save_freq` epochs ('epoch': each), and loads them at the start.

    With `delete_checkpoint`, a completed training removes them. Raises TypeError and ValueError for invalid arguments.
    """

    def __init__(self, backup_dir: str, save_freq: Any = "epoch", delete_checkpoint: bool = True) -> None:
        super().__init__()
        if not isinstance(backup_dir, str):
            raise TypeError(message(f"BackupAndRestore({short(backup_dir)})", f"a folder's path, got {type(backup_dir).__name__}"))
        if not backup_dir.strip():
            raise ValueError(message("BackupAndRestore('')", "a folder's path"))
        if save_freq != "epoch":
            if not is_int(save_freq):
                raise TypeError(message(f"BackupAndRestore(save_freq={short(save_freq)})", "'epoch' or an int"))
            if save_freq < 1:
                raise ValueError(message(f"BackupAndRestore(save_freq={save_freq})", "an int from 1 on"))
        check_bool("BackupAndRestore", "delete_checkpoint", delete_checkpoint)
        self.backup_file = str(Path(backup_dir).resolve() / "backup.ckpt")
        self.save_freq, self.delete_checkpoint = save_freq, delete_checkpoint

    def on_train_begin(self, run_context: RunContext) -> None:
        """Loads the Parameters of an earlier training."""
        state = state_of(self, run_context)
        if os.path.exists(self.backup_file):
            load_param_into_net(state.train_network, load_checkpoint(self.backup_file))

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Saves the Parameters if it is time to."""
        state = state_of(self, run_context)
        if self.save_freq == "epoch" or state.cur_epoch_num % self.save_freq == 0:
            Path(self.backup_file).parent.mkdir(parents=True, exist_ok=True)
            save_checkpoint(state.train_network, self.backup_file)

    def on_train_end(self, run_context: RunContext) -> None:
        """Removes the saved Parameters."""
        if self.delete_checkpoint:
            Path(self.backup_file).unlink(missing_ok=True)


class OnRequestExit(Callback):
    """Ends a training or evaluation after the step in which `sig` arrives, or in which `config_file` contains {"GracefulExit": 1}.

    With `save_ckpt` and `save_mindir` the network is saved first, as `directory`/rank_N/`file_name`_train.ckpt and .mindir, or `_eval` in
    an evaluation. Raises TypeError and ValueError for invalid arguments.
    """

    def __init__(
        self, save_ckpt: bool = True, save_mindir: bool = True, file_name: str = "Net", directory: str = "./",
        config_file: str | None = None, sig: Any = signal.SIGTERM,
    ) -> None:
        super().__init__()
        for key, value, kind in (
            ("save_ckpt", save_ckpt, bool), ("save_mindir", save_mindir, bool), ("file_name", file_name, str), ("sig", sig, int),
        ):
            if not isinstance(value, kind):
                raise ValueError(message(f"OnRequestExit({key}={short(value)})", f"{'an int' if kind is int else f'a {kind.__name__}'}"))
        for key, path in (("directory", directory), ("config_file", config_file)):
            if not isinstance(path, str) and not (key == "config_file" and path is None):
                raise TypeError(message(f"OnRequestExit({key}={short(path)})", f"a path, got {type(path).__name__}"))
        if sig not in signal.valid_signals() or sig in (signal.SIGKILL, signal.SIGSTOP):
            raise ValueError(message(f"OnRequestExit(sig={short(sig)})", "a signal that a program can catch, such as signal.SIGTERM"))
        self.save_ckpt, self.save_mindir, self.file_name, self.sig = save_ckpt, save_mindir, file_name, sig
        self.directory = Path(directory).resolve() / f"rank_{get_rank()}"
        self.config_file = config_file
        self.stop = self._is_done = False
        self._before: Any = None

    def on_train_begin(self, run_context: RunContext) -> None:
        """Installs the signal handler."""
        self.stop = self._is_done = False
        self._before = signal.signal(self.sig, self._request_exit_)

    on_eval_begin = on_train_begin

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Ends the training if that was requested."""
        self._end_if_requested_(run_context, "train_network", "train")

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Ends the evaluation if that was requested."""
        self._end_if_requested_(run_context, "eval_network", "eval")

    def on_train_end(self, run_context: RunContext) -> None:
        """Restores the previous signal handler."""
        if self._before is not None:
            signal.signal(self.sig, self._before)
            self._before = None

    on_eval_end = on_train_end

    def _request_exit_(self, number: int, _frame: Any) -> None:
        self.stop = self.stop or number == self.sig

    def _end_if_requested_(self, run_context: RunContext, network: str, kind: str) -> None:
        if self._is_done or not (self.stop or self._has_exit_request_()):
            return
        self._is_done = True
        state = state_of(self, run_context)
        base = str(self.directory / f"{self.file_name}_{kind}")
        if self.save_ckpt or self.save_mindir:
            self.directory.mkdir(parents=True, exist_ok=True)
        if self.save_ckpt:
            save_checkpoint(state[network], f"{base}.ckpt")
        if self.save_mindir:
            inputs = state.get("train_dataset_element" if kind == "train" else "eval_dataset_element")
            if inputs is not None:
                export(state[network], *inputs, file_name=base, file_format="MINDIR")
        run_context.request_stop()

    def _has_exit_request_(self) -> bool:
        """Return whether the file requests the end; an incomplete file is read again after the next step."""
        if self.config_file is None or not os.path.exists(self.config_file):
            return False
        try:
            return bool(json.loads(Path(self.config_file).read_text(encoding="utf-8")).get("GracefulExit"))
        except (ValueError, AttributeError):
            return False
