"""`SummaryRecord`: numbers, images and histograms of a training as TensorBoard's event files.

MindInsight, for which MindSpore writes, is no longer maintained; the files here are those that TensorBoard shows, written by the library
tensorboardX. Lineage, graphs of MindSpore's own and loss landscapes have no place in them.
"""
from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message, one_of, short
from torchspore.context import effects
from torchspore.engine import summaries
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell

PLUGINS = ("scalar", "image", "tensor", "histogram")
FOREIGN = ("graph", "train_lineage", "eval_lineage", "dataset_graph", "custom_lineage_data", "LANDSCAPE", "landscape")
MODES = ("train", "eval")
_open: list[SummaryRecord] = []


def _get_summary_tensor_data() -> dict[str, Tensor]:
    """What summary operators have kept since the last time, by names such as 'loss[:Scalar]'; nothing is kept while no record is open."""
    return {f"{name}[:{plugin.capitalize()}]": value for plugin, name, value in summaries.taken()}


class SummaryRecord:
    """Writes what summary operators and `add_value` keep to an event file in `log_dir`, made where it is not there, at each `record`.

    The file's name begins with `file_prefix` and ends with `file_suffix`. `max_file_size`, in bytes, ends the recording where the file has
    grown so far; `explain` says so. With `raise_exception` errors of the disk are raised, else `record` gives False. `export_options`
    {'tensor_format': 'npy'} writes each Tensor to a file of its own too. One record may be open at a time. Raises TypeError and ValueError
    for arguments that do not fit, ImportError without the library tensorboardX.
    """

    def __init__(
        self, log_dir: str, file_prefix: str = "events", file_suffix: str = "_MS", num_process: int = 32, network: Cell | None = None,
        max_file_size: int | None = None, raise_exception: bool = False, export_options: dict[str, Any] | None = None,
    ) -> None:
        for name, value in (("log_dir", log_dir), ("file_prefix", file_prefix), ("file_suffix", file_suffix)):
            if not isinstance(value, str):
                raise TypeError(message(f"SummaryRecord({name}={short(value)})", f"a str, got {type(value).__name__}"))
        _check_count("num_process", num_process)
        if max_file_size is not None:
            _check_count("max_file_size", max_file_size)
        if network is not None and not isinstance(network, Cell):
            raise TypeError(message(f"SummaryRecord(network={short(network)})", f"a Cell or None, got {type(network).__name__}"))
        if not isinstance(raise_exception, bool):
            raise TypeError(message(f"SummaryRecord(raise_exception={short(raise_exception)})", "a bool"))
        if export_options not in (None, {}, {"tensor_format": "npy"}, {"tensor_format": None}):
            raise ValueError(message(f"SummaryRecord(export_options={short(export_options)})", "{'tensor_format': 'npy'} or None"))
        if _open:
            hint = "call close() of the other one"
            raise RuntimeError(message("SummaryRecord(...) while another one is open", "one at a time", hint=hint))
        self._folder = Path(log_dir).expanduser().absolute()
        self._exports = bool(export_options and export_options["tensor_format"])
        self._limit, self._raises, self._mode, self._added = max_file_size, raise_exception, "train", []
        self._writer = _writer_class()(str(self._folder), filename_suffix=file_suffix)
        self._file = _renamed(self._writer, self._folder, file_prefix)
        self._is_closed = self._is_full = False
        _open.append(self)
        summaries.opened(1)
        if network is not None:
            effects.note("summaries", "SummaryRecord(network=...): event files hold no graph of it; set_context(save_graphs=...) shows one")

    log_dir = property(lambda self: str(self._file), doc="The path of the event file.")

    def set_mode(self, mode: str) -> None:
        """'train', or 'eval': then what summary operators keep is not written. Raises ValueError for another mode."""
        if mode not in MODES:
            raise ValueError(message(f"set_mode({short(mode)})", one_of(MODES)))
        self._mode = mode

    def add_value(self, plugin: str, name: str, value: Any) -> None:
        """Keeps a Tensor for the next `record`: a 'scalar', an 'image' (N, C, H, W), a 'histogram' or a 'tensor'.

        Raises TypeError and ValueError for arguments that do not fit; what only MindInsight shows is refused by its name.
        """
        if plugin in FOREIGN:
            raise ValueError(message(f"add_value({plugin!r}, ...)", f"{one_of(PLUGINS)}: TensorBoard's files hold none"))
        if plugin not in PLUGINS:
            raise ValueError(message(f"add_value({short(plugin)}, ...)", one_of(PLUGINS)))
        if not isinstance(name, str) or not name:
            raise ValueError(message(f"add_value({plugin!r}, {short(name)}, ...)", "a name"))
        if not isinstance(value, Tensor):
            raise TypeError(message(f"add_value({plugin!r}, {name!r}, {short(value)})", f"a Tensor, got {type(value).__name__}"))
        array = value.asnumpy()
        if plugin == "image" and array.ndim != 4:
            raise ValueError(message(f"add_value('image', {name!r}, ...) of shape {array.shape}", "the shape (N, C, H, W)"))
        if plugin == "scalar" and array.size != 1:
            raise ValueError(message(f"add_value('scalar', {name!r}, ...) of shape {array.shape}", "one number"))
        self._added.append((plugin, name, np.array(array)))

    def record(self, step: int, train_network: Cell | None = None, plugin_filter: Callable[[str], bool] | None = None) -> bool:
        """Writes all that was kept under the number `step`; `plugin_filter(plugin)` says what of it. Gives whether that went well.

        Raises TypeError for a step that is no int, RuntimeError after `close`.
        """
        if isinstance(step, bool) or not isinstance(step, int):
            raise TypeError(message(f"record(step={short(step)})", f"an int, got {type(step).__name__}"))
        if train_network is not None and not isinstance(train_network, Cell):
            raise TypeError(message(f"record(train_network={short(train_network)})", f"a Cell or None, got {type(train_network).__name__}"))
        if self._is_closed:
            raise RuntimeError(message("record(...) of a SummaryRecord that is closed", "an open one"))
        kept = [(plugin, name, value.asnumpy()) for plugin, name, value in summaries.taken()]
        values, self._added = [*(kept if self._mode == "train" else []), *self._added], []
        if self._grown():
            return False
        try:
            for plugin, name, array in values:
                if plugin_filter is None or plugin_filter(plugin):
                    self._write(plugin, name, array, step)
        except (OSError, RuntimeError):
            if self._raises:
                raise
            return False
        return True

    def _grown(self) -> bool:
        if self._limit is None or self._is_full:
            return self._is_full
        self._writer.flush()
        if self._file.exists() and self._file.stat().st_size >= self._limit:
            self._is_full = True
            effects.note("summaries", f"max_file_size={self._limit} is reached: nothing more is written to {self._file}")
        return self._is_full

    def _write(self, plugin: str, name: str, array: np.ndarray, step: int) -> None:
        if plugin == "scalar":
            self._writer.add_scalar(name, float(array.reshape(-1)[0]), step)
        elif plugin == "image":
            self._writer.add_images(name, _shown(array), step, dataformats="NCHW")
        elif np.size(array) and np.isfinite(array).all():
            self._writer.add_histogram(name, array.astype(np.float64), step)
        if plugin == "tensor" and self._exports:
            folder = self._folder / "export" / "tensor"
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / f"{re.sub(r'[^0-9A-Za-z_.-]', '_', name)}_{step}.npy", array)

    def flush(self) -> None:
        """Writes what waits to the disk."""
        if not self._is_closed:
            self._writer.flush()

    def close(self) -> None:
        """Writes what waits and closes the file; once more does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        self._writer.close()
        with contextlib.suppress(ValueError):
            _open.remove(self)
        summaries.opened(-1)

    def __enter__(self) -> SummaryRecord:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(message(f"SummaryRecord({name}={short(value)})", f"an int, got {type(value).__name__}"))
    if value < 1:
        raise ValueError(message(f"SummaryRecord({name}={value})", "an int from 1 on"))


def _writer_class() -> Any:
    try:
        return importlib.import_module("tensorboardX").SummaryWriter
    except ImportError:
        raise ImportError(message("SummaryRecord: the library tensorboardX is missing", "it to be installed",
                                  hint="pip install tensorboardX")) from None


def _renamed(writer: Any, folder: Path, prefix: str) -> Path:
    """The event file, whose name begins with the prefix; TensorBoard looks for 'tfevents' in the name, which stays there."""
    writer._get_file_writer()
    written = max(folder.glob("events.out.tfevents.*"), key=lambda path: path.stat().st_mtime_ns)
    named = written.with_name(written.name.replace("events", prefix, 1)) if prefix else written
    written.rename(named)
    return named


def _shown(images: np.ndarray) -> np.ndarray:
    """Images with values between 0 and 1, of one or three channels, whatever their range was."""
    images = images[:, :3] if images.shape[1] >= 3 else images[:, :1]
    low, high = float(images.min(initial=0)), float(images.max(initial=0))
    if low >= 0 and high <= 1:
        return images.astype(np.float32)
    if low >= 0 and high <= 255:
        return images.astype(np.float32) / 255
    return ((images - low) / max(high - low, 1e-12)).astype(np.float32)
