"""`SummaryRecord`: numbers, images, histograms, the network and the lineage of a training, as TensorBoard's files and as a page.

MindInsight, the target of MindSpore's files, is no longer maintained; the files here are for TensorBoard, written by the library
tensorboardX, and `curves.html`, which needs neither. They can't contain loss landscapes.
"""
from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.arguments import check_counts, check_int_type
from torchspore.base.text import list_choices, message, short
from torchspore.context import effects
from torchspore.html_pages.curves import Curves
from torchspore.mindspore import log
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train.summary.arguments import EXPORT_OPTIONS, check_export_options, check_folder
from torchspore.mindspore.train.summary.event_file import EventFile
from torchspore.observe import summaries

PLUGINS = ("scalar", "image", "tensor", "histogram")
FOREIGN = ("graph", "train_lineage", "eval_lineage", "dataset_graph", "custom_lineage_data", "LANDSCAPE", "landscape")
MODES = ("train", "eval")
PAGE = "curves.html"
_LEAST_OF_BYTES = 16
"""Pixels with a maximum above this are on a scale of 0 to 255; below it they are scaled numbers."""
_EVERY = 20.0
"""Seconds between two updates of the page during a training."""
_open: list[SummaryRecord] = []
_DEFAULT_EXPORT_OPTIONS = EXPORT_OPTIONS


def _get_summary_tensor_data() -> dict[str, Tensor]:
    """Return the values of summary operators since the last call, by names such as 'loss[:Scalar]'; empty without a record."""
    return {f"{name}[:{plugin.capitalize()}]": value for plugin, name, value in summaries.taken()}


class SummaryRecord:
    """Writes the values of summary operators and `add_value` to an event file in `log_dir`, which is created if missing, at each `record`.

    `curves.html` next to it is written every 20 seconds and at the end. The library tensorboardX writes the event file; without it there
    is only the page, and `explain` reports it. `network` is recorded too: the captured graph, in PyNative mode its Cells. The file's name
    starts with `file_prefix` and ends with `file_suffix`. `max_file_size`, in bytes, limits the recording; `explain` reports it. With
    `raise_exception` errors of the disk are raised, otherwise `record` returns False. `export_options` {'tensor_format': 'npy'} also writes
    each Tensor to a separate file. Only one record may be open at a time. Raises TypeError and ValueError for invalid arguments.
    """

    def __init__(
        self, log_dir: str, file_prefix: str = "events", file_suffix: str = "_MS", num_process: int = 32, network: Cell | None = None,
        max_file_size: int | None = None, raise_exception: bool = False, export_options: dict[str, Any] | None = None,
    ) -> None:
        check_folder("log_dir", log_dir)
        for name, value in (("file_prefix", file_prefix), ("file_suffix", file_suffix)):
            if not isinstance(value, str):
                raise TypeError(message(f"SummaryRecord({name}={short(value)})", f"a str, got {type(value).__name__}"))
        check_counts("SummaryRecord", num_process=num_process)
        if max_file_size is not None:
            check_counts("SummaryRecord", max_file_size=max_file_size)
        if network is not None and not isinstance(network, Cell):
            raise TypeError(message(f"SummaryRecord(network={short(network)})", f"a Cell or None, got {type(network).__name__}"))
        if not isinstance(raise_exception, bool):
            raise TypeError(message(f"SummaryRecord(raise_exception={short(raise_exception)})", "a bool"))
        check_export_options(export_options)
        if _open:
            hint = "call close() of the other one"
            raise RuntimeError(message("SummaryRecord(...) while another one is open", "one at a time", hint=hint))
        self._folder = Path(log_dir).expanduser().absolute()
        self._exports = bool(export_options and export_options["tensor_format"])
        self._limit, self._raises, self._mode, self._added = max_file_size, raise_exception, "train", []
        self._folder.mkdir(parents=True, exist_ok=True)
        self._page = self._folder / PAGE
        self._events = _event_file(self._folder, file_prefix, file_suffix)
        self._file = self._page if self._events is None else self._events.path
        self._curves, self._last_write = Curves(about=str(self._folder)), time.monotonic()
        self._is_closed = self._is_full = self._has_graph = False
        self._network = network
        if network is not None:
            summaries.expect_graph()
        _open.append(self)
        summaries.opened(1)

    log_dir = property(lambda self: str(self._file), doc="The path of the event file; of curves.html without event files.")

    def set_mode(self, mode: str) -> None:
        """Sets 'train', or 'eval': then the values of summary operators are not written. Raises ValueError for another mode."""
        if mode not in MODES:
            raise ValueError(message(f"set_mode({short(mode)})", list_choices(MODES)))
        self._mode = mode

    def add_value(self, plugin: str, name: str, value: Any) -> None:
        """Stores a Tensor for the next `record`: a 'scalar', an 'image' (N, C, H, W), a 'histogram' or a 'tensor'.

        Raises TypeError and ValueError for invalid arguments, and for kinds that only MindInsight shows.
        """
        if plugin in FOREIGN:
            raise ValueError(message(f"add_value({plugin!r}, ...)", f"{list_choices(PLUGINS)}: TensorBoard's files hold none"))
        if plugin not in PLUGINS:
            raise ValueError(message(f"add_value({short(plugin)}, ...)", list_choices(PLUGINS)))
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
        """Writes all stored values under the number `step`; `plugin_filter(plugin)` selects them. Returns whether that succeeded.

        Raises TypeError unless `step` is an int, RuntimeError after `close`.
        """
        check_int_type("record", "step", step)
        if train_network is not None and not isinstance(train_network, Cell):
            raise TypeError(message(f"record(train_network={short(train_network)})", f"a Cell or None, got {type(train_network).__name__}"))
        if self._is_closed:
            raise RuntimeError(message("record(...) of a SummaryRecord that is closed", "an open one"))
        collected = [(plugin, name, value.asnumpy()) for plugin, name, value in summaries.taken()]
        values, self._added = [*(collected if self._mode == "train" else []), *self._added], []
        if self._grown_():
            return False
        try:
            for plugin, name, array in values:
                if plugin_filter is None or plugin_filter(plugin):
                    self._write_(plugin, name, array, step)
            self._record_network_(train_network if train_network is not None else self._network)
            if time.monotonic() - self._last_write > _EVERY:
                self._write_page_()
        except OSError as error:
            self._give_up_(error)
            return False
        return True

    def _give_up_(self, error: OSError) -> None:
        """Stop writing to the file, which stays readable. Raises the error if `raise_exception` is set."""
        if self._events is not None:
            with contextlib.suppress(OSError):
                self._events.close()
        self._is_full, self._events = True, None
        if self._raises:
            raise error
        log.warning(f"{self._file} can't be written any more ({error.strerror}); the training continues without it")

    def _grown_(self) -> bool:
        if self._limit is None or self._is_full or self._events is None:
            return self._is_full
        self._events.flush()
        if self._file.exists() and self._file.stat().st_size >= self._limit:
            self._is_full = True
            effects.note("summaries", f"max_file_size={self._limit} is reached: nothing more is written to {self._file}")
        return self._is_full

    def _write_(self, plugin: str, name: str, array: np.ndarray, step: int) -> None:
        if plugin == "scalar":
            self._curves.scalar(name, step, float(array.reshape(-1)[0]))
        elif plugin == "image":
            self._curves.image(name, step, _shown(array)[0]) if len(array) else None
        else:
            self._curves.histogram(name, step, array)
        if self._events is not None:
            self._write_event_(self._events, plugin, name, array, step)
        if plugin == "tensor" and self._exports:
            folder = self._folder / "export" / "tensor"
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / f"{re.sub(r'[^0-9A-Za-z_.-]', '_', name)}_{step}.npy", array)

    def _write_event_(self, events: EventFile, plugin: str, name: str, array: np.ndarray, step: int) -> None:
        if plugin == "scalar":
            events.scalar(name, step, float(array.reshape(-1)[0]))
        elif plugin == "image":
            events.images(name, step, _shown(array))
        elif np.size(array) and np.isfinite(array).all():
            events.histogram(name, step, array)

    def _record_network_(self, network: Cell | None) -> None:
        """Record the network, once: after the first step, when its graph exists."""
        if network is None or self._has_graph:
            return
        self._has_graph = True
        nodes, description = summaries.network(network)
        self._curves.graph([(node.name, node.kind, node.reads, node.about) for node in nodes], description)
        if self._events is not None:
            self._events.graph([(_plain(node.name), node.kind, list(map(_plain, node.reads)), node.about) for node in nodes])

    def _add_text_(self, name: str, content: dict[str, Any]) -> None:
        """Record facts as a text."""
        text = json.dumps(content, indent=2, default=str)
        self._curves.text(name, text)
        if self._events is not None:
            self._events.text(name, f"```\n{text}\n```")

    def _write_page_(self) -> None:
        self._last_write = time.monotonic()
        self._curves.write(self._page)
        if self._events is not None:
            self._events.flush()

    def flush(self) -> None:
        """Flushes buffered values to the disk."""
        if not self._is_closed:
            self._write_page_()

    def close(self) -> None:
        """Flushes buffered values and closes the file; a second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._record_network_(self._network)
            self._write_page_()
            if self._events is not None:
                self._events.close()
        except OSError as error:
            self._give_up_(error)
        finally:
            with contextlib.suppress(ValueError):
                _open.remove(self)
            summaries.opened(-1)

    def __enter__(self) -> SummaryRecord:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _event_file(folder: Path, prefix: str, suffix: str) -> EventFile | None:
    """Return the writer of event files; None without its library."""
    try:
        return EventFile(folder, prefix, suffix)
    except ImportError:
        effects.note("summaries", f"tensorboardX is not installed: {folder / PAGE} is written, no event files "
                                  "(pip install 'torchspore[summary]')")
        return None


def _plain(name: str) -> str:
    """Return a name with only the characters that TensorBoard's graphs accept."""
    return re.sub(r"[^A-Za-z0-9_./-]", "_", name)


def _shown(images: np.ndarray) -> np.ndarray:
    """Convert images of any range to values between 0 and 1, with one or three channels."""
    images = images[:, :3] if images.shape[1] >= 3 else images[:, :1]
    low, high = float(images.min(initial=0)), float(images.max(initial=0))
    if low >= 0 and high <= 1:
        return images.astype(np.float32)
    if low >= 0 and _LEAST_OF_BYTES < high <= 255:
        return images.astype(np.float32) / 255
    return ((images - low) / max(high - low, 1e-12)).astype(np.float32)
