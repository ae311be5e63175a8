"""`ModelCheckpoint`: saves the network while it trains."""
from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path
from typing import Any

from torchspore.base import encryption
from torchspore.base.arguments import check_bool, check_int, check_type
from torchspore.base.text import message, short
from torchspore.distributed.data_parallel import optimizer_shards, settings
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train import sharded_files
from torchspore.mindspore.train.callback._callback import Callback, RunContext, state_of
from torchspore.mindspore.train.callback._checkpoint_counters import Counters, counters_of
from torchspore.mindspore.train.serialization import save_and_then


class CheckpointConfig:
    """Settings of ModelCheckpoint: when it saves and which files it retains.

    It saves every `save_checkpoint_steps` steps, or, if that is 0 or None, every `save_checkpoint_seconds` seconds; and at the end.
    Without `integrated_save` each process saves its part of sharded Parameters. It retains the last `keep_checkpoint_max` files, or, if
    that is 0 or None, one for each `keep_checkpoint_per_n_minutes`. `saved_network` is saved instead of the training step, `append_info`
    adds 'epoch_num', 'step_num' or a dict. With `remove_redundancy` each process saves a share of the replicated Parameters.
    `exception_save` also saves if an error or Ctrl-C aborts the training. `format` is that of `save_checkpoint`; with 'dcp' all processes
    save into one folder.
    """

    def __init__(
        self, save_checkpoint_steps: int | None = 1, save_checkpoint_seconds: int | None = 0, keep_checkpoint_max: int | None = 5,
        keep_checkpoint_per_n_minutes: int | None = 0, integrated_save: bool = True, async_save: bool | str = False,
        saved_network: Cell | None = None, append_info: list[Any] | None = None, enc_key: bytes | None = None, enc_mode: str = "AES-GCM",
        exception_save: bool = False, crc_check: bool = False, remove_redundancy: bool = False, format: str = "ckpt", **kwargs: Any,
    ) -> None:
        call = "CheckpointConfig"
        counts = {
            "save_checkpoint_steps": save_checkpoint_steps, "save_checkpoint_seconds": save_checkpoint_seconds,
            "keep_checkpoint_max": keep_checkpoint_max, "keep_checkpoint_per_n_minutes": keep_checkpoint_per_n_minutes,
        }
        for name, value in counts.items():
            if value is not None:
                check_int(call, name, value, 0)
        if saved_network is not None:
            check_type(call, "saved_network", saved_network, Cell, "a Cell or None")
        for name, flag in (
            ("integrated_save", integrated_save), ("exception_save", exception_save), ("crc_check", crc_check),
            ("remove_redundancy", remove_redundancy),
        ):
            check_bool(call, name, flag)
        check_type(call, "async_save", async_save, (bool, str), "True, False, 'thread' or 'process'")
        if enc_key is not None:
            encryption.check(call, "enc", enc_key, enc_mode)
        self.enc_key, self.enc_mode = enc_key, enc_mode
        self._save_checkpoint_steps, self._save_checkpoint_seconds = save_checkpoint_steps, save_checkpoint_seconds
        self._keep_checkpoint_max, self._keep_checkpoint_per_n_minutes = keep_checkpoint_max, keep_checkpoint_per_n_minutes
        if save_checkpoint_steps and save_checkpoint_steps > 0:
            self._save_checkpoint_seconds = None
        if keep_checkpoint_max and keep_checkpoint_max > 0:
            self._keep_checkpoint_per_n_minutes = None
        elif not keep_checkpoint_per_n_minutes:
            self._keep_checkpoint_max = 1
        self.integrated_save, self.async_save, self.saved_network = integrated_save, async_save, saved_network
        self.exception_save, self.crc_check, self.format = exception_save, crc_check, format
        self.remove_redundancy = remove_redundancy
        self._append_dict = _append_dict(append_info)

    save_checkpoint_steps = property(lambda self: self._save_checkpoint_steps, doc="Steps between two files.")
    save_checkpoint_seconds = property(lambda self: self._save_checkpoint_seconds, doc="Seconds between two files.")
    keep_checkpoint_max = property(lambda self: self._keep_checkpoint_max, doc="The number of files that are retained.")
    keep_checkpoint_per_n_minutes = property(
        lambda self: self._keep_checkpoint_per_n_minutes, doc="The minutes for each of which a file is retained."
    )
    append_dict = property(lambda self: self._append_dict, doc="The data that is saved in addition to the network.")

    def get_checkpoint_policy(self) -> dict[str, Any]:
        """Returns the settings as a dict."""
        return {
            "save_checkpoint_steps": self._save_checkpoint_steps, "save_checkpoint_seconds": self._save_checkpoint_seconds,
            "keep_checkpoint_max": self._keep_checkpoint_max, "keep_checkpoint_per_n_minutes": self._keep_checkpoint_per_n_minutes,
            "saved_network": self.saved_network,
        }


def _append_dict(append_info: list[Any] | None) -> dict[str, Any]:
    if append_info is None:
        return {}
    check_type("CheckpointConfig", "append_info", append_info, list, "a list")
    added: dict[str, Any] = {}
    for item in append_info:
        if isinstance(item, dict):
            added.update(item)
        elif item in ("epoch_num", "step_num"):
            added[item] = 0
        else:
            raise ValueError(message(f"CheckpointConfig(append_info=[{short(item)}])", "'epoch_num', 'step_num' or a dict"))
    return added


class ModelCheckpoint(Callback):
    """Saves the training step (network and optimizer) as `directory`/`prefix`-`epoch`_`step in epoch`.ckpt, depending on `config`.

    If files with this prefix exist already, a number follows it: `prefix`_1-.... `prefix` and `directory` may be functions of cb_params.
    While it trains, `ascend_config` of the context has its counters, which a callback may change: `need_ckpt`, `save_checkpoint_steps`,
    `cur_step_num`, `last_triggered_step`.
    Raises ValueError for an invalid prefix, TypeError for another config.
    """

    def __init__(self, prefix: Any = "CKP", directory: Any = None, config: CheckpointConfig | None = None) -> None:
        super().__init__()
        if not callable(prefix) and (not isinstance(prefix, str) or "/" in prefix):
            raise ValueError(message(f"ModelCheckpoint(prefix={short(prefix)})", "a name without '/', or a function of cb_params"))
        if directory is not None and not callable(directory):
            check_type("ModelCheckpoint", "directory", directory, (str, os.PathLike), "a path or a function of cb_params")
        if config is not None:
            check_type("ModelCheckpoint", "config", config, CheckpointConfig, "a CheckpointConfig")
        self._prefix_argument_, self._directory_argument_ = prefix, directory
        self._config = config or CheckpointConfig()
        self._prefix = prefix
        self._directory = None if callable(directory) else Path(directory or os.getcwd()).expanduser().absolute()
        self._latest_ckpt_file_name = ""
        self._last_triggered_step = 0
        self._last_time = self._last_time_for_keep = time.time()
        self._saved_paths_: list[Path] = []
        self._append_ = dict(self._config.append_dict)
        self._offsets_ = {name: self._append_.get(name, 0) for name in ("epoch_num", "step_num") if name in self._append_}
        self._is_named_ = False
        self._state_: Any = None
        self._counters_ = Counters()

    @property
    def latest_ckpt_file_name(self) -> str:
        """The path of the last saved file, '' before the first."""
        return self._latest_ckpt_file_name

    @property
    def _get_last_trigger_step(self) -> int:
        return self._last_triggered_step

    @property
    def _get_save_checkpoint_steps(self) -> int | None:
        return self._config.save_checkpoint_steps

    def _prepare_(self, run_context: RunContext) -> None:
        """Records the time and creates the folder, so that a failure appears before the first step."""
        self._last_time = self._last_time_for_keep = time.time()
        self._last_triggered_step = 0
        self._state_ = state_of(self, run_context)
        if counters_of(self._state_.get("list_callback")) in (None, self._counters_):
            self._counters_.begin(self._config.save_checkpoint_steps)
        self._settle_names_(self._state_)
        if self._config.save_checkpoint_seconds and not self._config.save_checkpoint_steps:
            network = self._config.saved_network or self._state_.train_network
            is_sharded = any(optimizer_shards.MARK in parameter.__dict__ for parameter in network.get_parameters())
            if is_sharded or (self._config.format == sharded_files.FORMAT and settings.processes() > 1):
                reason = "enable_parallel_optimizer" if is_sharded else "format='dcp'"
                raise ValueError(message(
                    f"CheckpointConfig(save_checkpoint_seconds={self._config.save_checkpoint_seconds}) with {reason}",
                    "save_checkpoint_steps: all processes must save at the same step, because each has a part of the state",
                ))

    on_eval_begin = Callback.begin
    on_eval_end = Callback.end

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Saves nothing during an evaluation."""

    def step_end(self, run_context: RunContext) -> None:
        """Saves if it is time to."""
        self._state_ = state_of(self, run_context)
        self._save_ckpt(self._state_)

    def end(self, run_context: RunContext) -> None:
        """Saves the last step, and waits until all files have been written."""
        self._state_ = state_of(self, run_context)
        self._save_ckpt(self._state_, True)
        self._counters_.end()
        from torchspore.mindspore.train.serialization import wait_for_writers

        wait_for_writers()

    def __exit__(self, error_type: Any, error: Any, trace: Any) -> None:
        if error is None or not self._config.exception_save or not self._is_named_ or not self._state_:
            return
        prefix, self._prefix = self._prefix, f"{self._prefix}_breakpoint"
        try:
            self._save_ckpt(self._state_, True)
        except Exception as second:                       # the error that ended the training takes precedence
            from torchspore.mindspore import log

            log.warning("ModelCheckpoint(exception_save=True): nothing is saved: %s", str(second).partition("\n")[0])
        finally:
            self._prefix = prefix

    def _settle_names_(self, state: Any) -> None:
        if self._is_named_:
            return
        self._is_named_ = True
        if callable(self._directory_argument_):
            self._directory = Path(self._directory_argument_(state)).expanduser().absolute()
        if callable(self._prefix_argument_):
            self._prefix = self._prefix_argument_(state)
        assert self._directory is not None
        self._directory.mkdir(parents=True, exist_ok=True)
        self._prefix = free_prefix(self._directory, self._prefix, self._config.format)

    def _check_save_ckpt(self, cb_params: Any, force_to_save: bool) -> bool:
        """Return whether it is time to save, or `force_to_save` is set."""
        if force_to_save:
            return True
        counters, current_step = self._counters_, self._counters_.current_step(cb_params.cur_step_num)
        if counters.is_suspended():
            return False
        steps, seconds = counters.steps(self._config.save_checkpoint_steps), self._config.save_checkpoint_seconds
        if steps and steps > 0:
            return current_step >= counters.last_step(self._last_triggered_step) + steps
        if seconds and seconds > 0:
            return time.time() - self._last_time > seconds
        return False

    def _save_ckpt(self, cb_params: Any, force_to_save: bool = False) -> None:
        """Save this step if `_check_save_ckpt` returns True and it has not been saved yet."""
        state = cb_params
        if state.cur_step_num == self._last_triggered_step or not state.cur_step_num or not self._check_save_ckpt(state, force_to_save):
            return
        self._settle_names_(state)
        step = (state.cur_step_num - 1) % state.batch_num + 1
        assert self._directory is not None
        path = self._directory / f"{self._prefix}-{state.cur_epoch_num}_{step}.{self._config.format}"
        for name, value in (("epoch_num", state.cur_epoch_num), ("step_num", state.cur_step_num)):
            if name in self._offsets_:
                self._append_[name] = self._offsets_[name] + value
        network = self._config.saved_network or state.train_network
        config = self._config
        old = self._outdated_(path)
        secret = (config.enc_key, config.enc_mode)
        save_and_then(network, str(path), config.async_save, self._append_ or None, secret, config.format,
                      lambda: [_remove(path_to_remove) for path_to_remove in old], config.integrated_save, self._names_to_save_(network))
        self._last_triggered_step = state.cur_step_num
        self._counters_.saved(state.cur_step_num)
        self._latest_ckpt_file_name = str(path)
        state.latest_ckpt_file, state.last_save_ckpt_step = str(path), state.cur_step_num
        self._last_time = time.time()

    def _names_to_save_(self, network: Cell) -> frozenset[str] | None:
        """Return the names of replicated Parameters, and of `append_info`, that this process saves; None if it saves all."""
        if not self._config.remove_redundancy or settings.processes() == 1 or self._config.format == sharded_files.FORMAT:
            return None
        from torchspore.distributed import device_count
        from torchspore.distributed.shard import redundancy

        keepers = redundancy.keepers(network.get_parameters())
        return frozenset(name for name, rank in keepers.items() if rank == device_count.rank()) | frozenset(self._append_)

    def _outdated_(self, path: Path) -> list[Path]:
        """Return the files to remove when the new file is complete."""
        max_files, minutes = self._config.keep_checkpoint_max, self._config.keep_checkpoint_per_n_minutes
        if path in self._saved_paths_:
            self._saved_paths_.remove(path)
        self._saved_paths_.append(path)
        if max_files and max_files > 0:
            old, self._saved_paths_ = self._saved_paths_[:-max_files], self._saved_paths_[-max_files:]
            return old
        if minutes and minutes > 0:
            if time.time() - self._last_time_for_keep < minutes * 60:
                old, self._saved_paths_ = self._saved_paths_[:-1], self._saved_paths_[-1:]
                return old
            self._last_time_for_keep = time.time()
            self._saved_paths_ = []
        return []


def _remove(path: Path) -> None:
    if path.is_dir():
        sharded_files.remove(path)
        return
    try:
        if os.name == "nt":
            path.chmod(stat.S_IWRITE)
        path.unlink()
    except FileNotFoundError:
        pass  # already removed by somebody else


def free_prefix(directory: Path, prefix: str, format: str = "ckpt") -> str:
    """Return `prefix`, or `prefix`_N with the first N above those of the files in `directory`."""
    pattern = re.compile(rf"{re.escape(prefix)}(?:_(\d+))?-\d+_\d+\.{re.escape(format)}")
    numbers = [int(match.group(1) or 0) for name in os.listdir(directory) if (match := pattern.fullmatch(name))]
    return f"{prefix}_{max(numbers) + 1}" if numbers else prefix
