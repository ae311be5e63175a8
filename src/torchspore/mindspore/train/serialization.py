"""Checkpoints: `save_checkpoint`, `load_checkpoint`, `load_param_into_net`; MindSpore's file format, safetensors, sharded folders."""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base import checkpoint_file, encryption, files
from torchspore.base.checkpoint_file import TEXT, Entry
from torchspore.base.frames import warn
from torchspore.base.suggest import closest
from torchspore.base.text import list_choices, message, short, with_hint, with_type
from torchspore.distributed.data_parallel import optimizer_shards, settings
from torchspore.distributed.shard import gather
from torchspore.engine.split_layouts.sharded_layout import sharded_layout_of
from torchspore.engine.tensors.tensor import raw, wrap
from torchspore.export import safetensors_files
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common import remote_parameters, server_session
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.experimental.map_parameter import MapParameter
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train import sharded_files, writer_threads
from torchspore.translations import translate

_FLOATS = frozenset({"Float16", "Float32", "Float64", "BFloat16"})
_INTEGERS = frozenset({"Int8", "Int16", "Int32", "Int64"})
_FORMATS = ("ckpt", "safetensors", sharded_files.FORMAT)


# Between Tensors and the values of a file ------------------------------------------------------------------------------------------------


def to_entry(name: str, value: Any) -> Entry:
    """Convert a Tensor, array, number, bool or str to an entry of a checkpoint file."""
    if isinstance(value, str):
        return Entry(name, TEXT, (), value)
    if isinstance(value, bool):
        return Entry(name, "Bool", (), np.array(value))
    if isinstance(value, int):
        return Entry(name, "Int64", (), np.array(value, np.int64))
    if isinstance(value, float):
        return Entry(name, "Float32", (), np.array(value, np.float32))
    if isinstance(value, np.ndarray):
        value = Tensor(value)
    type_name = str(value.dtype)
    if type_name not in checkpoint_file.NUMPY_TYPES:
        raise TypeError(message(f"save_checkpoint: {name!r} of type {type_name}", "a type that a checkpoint can store"))
    if type_name == "BFloat16":
        bits = np.ascontiguousarray(value.astype(mstype.float32).asnumpy()).view(np.uint32) >> 16
        return Entry(name, type_name, tuple(value.shape), bits.astype(np.uint16))
    return Entry(name, type_name, tuple(value.shape), value.asnumpy())


def to_value(entry: Entry, requires_grad: bool = True) -> Any:
    """Convert an entry to a Parameter, or to the str in it."""
    if entry.type_name == TEXT:
        return entry.values
    if entry.type_name == "BFloat16":
        tensor = Tensor(entry.array()).astype(mstype.bfloat16)
    else:
        tensor = Tensor.from_numpy(entry.array())
    return Parameter(tensor, name=entry.name, requires_grad=requires_grad)


# Saving ----------------------------------------------------------------------------------------------------------------------------------


def save_checkpoint(
    save_obj: Any, ckpt_file_name: str, integrated_save: bool = True, async_save: bool | str = False,
    append_dict: dict[str, Any] | None = None, enc_key: bytes | None = None, enc_mode: str = "AES-GCM",
    choice_func: Callable[[str], bool] | None = None, crc_check: bool = False, format: str = "ckpt", **kwargs: Any,
) -> None:
    """Saves Parameters to a file that MindSpore reads too.

    `save_obj` is a Cell, a list of Parameters or of {'name': str, 'data': Tensor}, or a dict from name to Tensor. `append_dict` adds
    numbers, bools, text and Tensors. Sharded Parameters are gathered from all processes, which must all save; without `integrated_save`
    each process saves its part, without the Parameters of other stages of a pipeline. `choice_func(name)` selects the Parameters; the
    values of `append_dict` are always saved. `format` is 'ckpt', 'safetensors' or 'dcp'; its suffix is added if the name has another. 'dcp'
    is a folder to which each process writes the parts that it stores, with torch.distributed.checkpoint; all processes must save, and
    nothing is gathered.
    The file is first written under a temporary name, so that it never exists incompletely; it is read-only, as in MindSpore. With
    `async_save` a thread writes while the program continues; the next call that saves or loads waits for it and raises its errors. The
    file has a checksum (`crc_check` requires it when loading), unless it is encrypted: with `enc_key`, 16, 24 or 32 bytes, and `enc_mode`
    'AES-GCM', 'AES-CBC' or 'SM4-CBC', which needs the library cryptography. Raises TypeError and ValueError for invalid arguments,
    FileNotFoundError if the folder does not exist.
    """
    if not isinstance(integrated_save, bool):
        raise TypeError(message(f"save_checkpoint(integrated_save={short(integrated_save)})", "True or False"))
    _save(save_obj, ckpt_file_name, async_save, append_dict, (enc_key, enc_mode), choice_func, format, None, integrated_save)


def save_and_then(
    save_obj: Any, name: str, async_save: Any, append_dict: dict[str, Any] | None, secret: tuple[Any, Any], format: str,
    then: Callable[[], None], is_gathered: bool = True, only: frozenset[str] | None = None,
) -> None:
    """Run `save_checkpoint`, then call `then()`: with `async_save` in the writing thread. With `only`, only these names are saved."""
    _save(save_obj, name, async_save, append_dict, secret, None, format, then, is_gathered, only)


def _save(
    save_obj: Any, ckpt_file_name: str, async_save: Any, append_dict: dict[str, Any] | None, secret: tuple[Any, Any],
    choice_func: Callable[[str], bool] | None, format: str, then: Callable[[], None] | None, is_gathered: bool,
    only: frozenset[str] | None = None,
) -> None:
    _check_save(save_obj, ckpt_file_name, async_save, append_dict, choice_func, format)
    if secret[0] is not None:
        encryption.check("save_checkpoint", "enc", *secret)
        if format != "ckpt":
            raise ValueError(message(f"save_checkpoint(enc_key=..., format={format!r})", "format='ckpt': only these files are encrypted"))
    path = Path(ckpt_file_name if ckpt_file_name.endswith("." + format) else f"{ckpt_file_name}.{format}").expanduser().absolute()
    if not path.parent.is_dir():
        expected = translate("a folder that exists: {path}").format(path=path.parent)
        raise FileNotFoundError(message(f"save_checkpoint({ckpt_file_name!r})", expected))
    if format == sharded_files.FORMAT:
        description = f"save_checkpoint({ckpt_file_name!r}, async_save={async_save!r}, format={format!r})"
        sharded_files.save(path, _selected(save_obj, append_dict, choice_func), bool(async_save), then, description)
        return
    entries = [entry for entry in _entries(save_obj, append_dict, choice_func, is_gathered) if only is None or entry.name in only]
    # One writer at a time, in the order of the calls: memory then has one copy, and the later of two saves to one name remains.
    wait_for_writers()
    if not async_save:
        _write(path, entries, format, secret)
        if then is not None:
            then()
        return
    # The copies are taken now; the next training step changes the Parameters in place.
    copies = [entry if entry.type_name == TEXT else entry._replace(values=np.array(entry.values)) for entry in entries]

    def write() -> None:
        _write(path, copies, format, secret)
        if then is not None:
            then()

    writer_threads.start(write, f"save_checkpoint({ckpt_file_name!r}, async_save={async_save!r})")


def _check_save(save_obj: Any, name: Any, async_save: Any, append_dict: Any, choice_func: Any, format: Any) -> None:
    if not isinstance(save_obj, (Cell, list, dict)):
        raise TypeError(message(f"save_checkpoint({short(save_obj)}, ...)", with_type("a Cell, a list or a dict", save_obj)))
    if not isinstance(name, str):
        raise TypeError(message(f"save_checkpoint(..., {short(name)})", with_type("a file name", name)))
    if not isinstance(async_save, (bool, str)):
        raise TypeError(message(f"save_checkpoint(async_save={short(async_save)})", "True, False, 'thread' or 'process'"))
    if isinstance(async_save, str) and async_save not in ("thread", "process"):
        raise ValueError(message(f"save_checkpoint(async_save={async_save!r})", "True, False, 'thread' or 'process'"))
    if format not in _FORMATS:
        raise ValueError(message(f"save_checkpoint(format={short(format)})", list_choices(_FORMATS)))
    if choice_func is not None and not callable(choice_func):
        raise TypeError(message(f"save_checkpoint(choice_func={short(choice_func)})", "a function of a name"))
    if append_dict is None:
        return
    if not isinstance(append_dict, dict):
        raise TypeError(message(f"save_checkpoint(append_dict={short(append_dict)})", f"a dict, got {type(append_dict).__name__}"))
    for key, value in append_dict.items():
        if not isinstance(key, str) or not isinstance(value, (int, float, bool, str, Tensor)):
            raise TypeError(
                message(f"save_checkpoint(append_dict={{{short(key)}: {short(value)}}})", "names with numbers, bools, text or Tensors")
            )


def _selected(save_obj: Any, append_dict: dict[str, Any] | None, choose: Callable[[str], bool] | None) -> dict[str, Any]:
    """Return the values to save by name."""
    selected: dict[str, Any] = {}
    for name, value in _named(save_obj):
        if choose is None or choose(name):
            selected.setdefault(name, value)
    return selected | (append_dict or {})


def _entries(
    save_obj: Any, append_dict: dict[str, Any] | None, choose: Callable[[str], bool] | None, is_gathered: bool,
) -> Iterator[Entry]:
    values = _selected(save_obj, append_dict, choose)
    if is_gathered:
        gather.wait_for_holders("save_checkpoint", values.values())
    for name, value in values.items():
        if isinstance(value, MapParameter):
            raise TypeError(message(
                f"save_checkpoint of the MapParameter {name!r}", "Tensors: a checkpoint cannot store its keys",
                hint="write choice_func=... to leave it out, and save table.export_data() separately",
            ))
        if remote_parameters.is_remote(value):
            yield _remote_entry(name, value)
        elif is_gathered or not isinstance(value, Tensor):
            yield to_entry(name, _gathered(value))
        elif not gather.is_elsewhere(value):
            yield to_entry(name, gather.local_value(value))


def _remote_entry(name: str, value: Any) -> Entry:
    """Return the entry of a Parameter whose values servers store; its rows are fetched in blocks when the file is written."""
    if value.ndim == 0:
        return to_entry(name, value.value())
    like = to_entry(name, Tensor(np.zeros(1, np.float32)).astype(value.dtype))
    values = checkpoint_file.BlockedValues(
        lambda: (to_entry(name, block).values for block in value.row_blocks()), tuple(value.shape), like.values.dtype,
    )
    return Entry(name, like.type_name, tuple(value.shape), values)


def _gathered(value: Any) -> Any:
    """Return the value joined from the parts of all processes; all of them must save."""
    share = getattr(value, "__dict__", {}).get(optimizer_shards.MARK)
    if share is not None:
        return wrap(optimizer_shards.full_value(raw(value), share))
    cut = sharded_layout_of(value)
    return value if cut is None else wrap(gather.full_value(raw(value), cut))


def _named(save_obj: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(save_obj, Cell):
        return [(parameter.name, parameter) for _, parameter in save_obj.parameters_and_names()]
    if isinstance(save_obj, dict):
        for name, value in save_obj.items():
            _check_named(name, value, "{name: Tensor, ...}", (Tensor, np.ndarray, int, float, str))
        return list(save_obj.items())
    if save_obj and isinstance(save_obj[0], Parameter):
        wrong = next((item for item in save_obj if not isinstance(item, Parameter)), None)
        if wrong is not None:
            raise TypeError(message(f"save_checkpoint([..., {short(wrong)}])", "a list of Parameters alone, after its first item"))
        return [(parameter.name, parameter) for parameter in save_obj]
    pairs = []
    for item in save_obj:
        if not isinstance(item, dict) or "name" not in item or "data" not in item:
            raise TypeError(message(f"save_checkpoint([{short(item)}])", "Parameters, or dicts {'name': str, 'data': Tensor}"))
        _check_named(item["name"], item["data"], "dicts {'name': str, 'data': Tensor}", (Tensor,))
        pairs.append((item["name"], item["data"]))
    return pairs


def _check_named(name: Any, value: Any, expected: str, types: tuple[type, ...]) -> None:
    if not isinstance(name, str) or not isinstance(value, types):
        raise TypeError(message(f"save_checkpoint of {short(name)}: {type(value).__name__}", expected))


def read_file(path: Path, format: str) -> list[Entry]:
    """Return the entries of a checkpoint file. Raises FileFormatError, which names the file, for a truncated file or another format."""
    wait_for_writers()
    return _read(path, format, False, (None, "AES-GCM"))


def write_file(path: Path, entries: list[Entry], format: str) -> None:
    """Write a checkpoint file, completely or not at all. Raises OSError."""
    _write(path, entries, format, (None, "AES-GCM"))


def _write(path: Path, entries: list[Entry], format: str, secret: tuple[Any, Any]) -> None:
    files.sweep(path.parent, f".{format}")         # temporary files of killed programs, also for other names
    if format == "ckpt":
        checkpoint_file.write(path, iter(entries), *secret)
        return
    with files.atomic_file(path, files.READ_ONLY, durable=True) as file:
        safetensors_files.write(file.name, (safetensors_files.Stored(*_unblocked(entry)) for entry in entries))


def _unblocked(entry: Entry) -> Entry:
    return entry._replace(values=np.asarray(entry.values)) if isinstance(entry.values, checkpoint_file.BlockedValues) else entry


def async_ckpt_thread_status() -> bool:
    """Returns whether a thread of `save_checkpoint(async_save=True)` still writes."""
    return writer_threads.is_busy()


def wait_for_writers() -> None:
    """Wait until the threads of `save_checkpoint(async_save=True)` have ended. Raises their errors, once."""
    writer_threads.wait()


# Loading ---------------------------------------------------------------------------------------------------------------------------------


def load_checkpoint(
    ckpt_file_name: str, net: Cell | None = None, strict_load: bool = False, filter_prefix: Any = None, dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM", specify_prefix: Any = None, choice_func: Callable[[str], bool] | None = None, crc_check: bool = False,
    remove_redundancy: bool = False, format: str = "ckpt",
) -> dict[str, Any]:
    """Returns the Parameters of a checkpoint file by name, and loads them into `net` if there is one.

    `specify_prefix` selects the names with a prefix, `filter_prefix` drops them; without both `choice_func(name)` selects names. A checksum
    in the file is always verified. Raises ValueError for a missing file, a wrong suffix and an empty selection, and FileFormatError (a
    ValueError), which names the file, for a truncated file or another format: nothing is loaded then.
    """
    wait_for_writers()
    path = _check_load(ckpt_file_name, format, (dec_key, dec_mode))
    dropped, prefixes = _prefixes("filter_prefix", filter_prefix), _prefixes("specify_prefix", specify_prefix)
    if choice_func is not None and (dropped or prefixes):
        argument = "filter_prefix" if dropped else "specify_prefix"
        _warn(f"load_checkpoint({ckpt_file_name!r}, choice_func=...): {argument} is used, and choice_func is ignored",
              "let choice_func check the prefixes")
        choice_func = None

    def is_chosen(name: str) -> bool:
        if (dropped and name.startswith(dropped)) or (prefixes and not name.startswith(prefixes)):
            return False
        return choice_func is None or bool(choice_func(name))

    if format == sharded_files.FORMAT:
        loaded = sharded_files.load(path, is_chosen, crc_check)
    else:
        entries = _read(path, format, crc_check, (dec_key, dec_mode))
        loaded = {entry.name: to_value(entry) for entry in entries if is_chosen(entry.name)}
    if not loaded:
        raise ValueError(
            message(f"load_checkpoint({ckpt_file_name!r})", "at least one parameter, after filter_prefix, specify_prefix and choice_func")
        )
    if net is not None:
        parameters = {name: value for name, value in loaded.items() if isinstance(value, Parameter)}
        _warn_missing(ckpt_file_name, net, *load_param_into_net(net, parameters, strict_load, remove_redundancy))
    return loaded


def _warn_missing(name: str, net: Cell, missing: list[str], unused: list[str]) -> None:
    """Warn about Parameters of the net that the file lacks: it may belong to another net, or be truncated between two records."""
    if not missing:
        return
    count = len(list(net.parameters_and_names()))
    shown = ", ".join(repr(parameter_name) for parameter_name in missing[:3]) + (", .." if len(missing) > 3 else "")
    num_present = translate("none") if len(missing) == count else f"{count - len(missing)}"
    hint = (translate("the file has {name!r} among others; rename them, or load another file").format(name=unused[0]) if unused
            else translate("the file may be truncated"))
    text = translate("load_checkpoint({file!r}, net): {present} of the net's {count} parameters are in the file; {names} keep their values")
    _warn(text.format(file=name, present=num_present, count=count, names=shown), hint)


def _warn(text: str, hint: str) -> None:
    """Warn at the user's line."""
    warn(with_hint(text + translate("."), hint), "load_checkpoint")


def _check_load(name: Any, format: str, secret: tuple[Any, Any]) -> Path:
    if not isinstance(name, str):
        raise TypeError(message(f"load_checkpoint({short(name)})", with_type("a file name", name)))
    if secret[0] is not None:
        encryption.check("load_checkpoint", "dec", *secret)
    if format not in _FORMATS:
        raise ValueError(message(f"load_checkpoint(format={short(format)})", list_choices(_FORMATS)))
    if not name.endswith("." + format):
        hint = (translate("write {word}").format(word="format='safetensors'") if name.endswith(".safetensors") else
                translate("the file's name must end with .{format}").format(format=format))
        expected = translate("a file name that ends with .{format}").format(format=format)
        raise ValueError(message(f"load_checkpoint({name!r}, format={format!r})", expected, hint=hint))
    path = Path(name).expanduser().absolute()
    is_of_kind = path.is_dir() if format == sharded_files.FORMAT else path.is_file()
    if path.exists() and not is_of_kind:
        expected = (translate("a folder, which {path} is not") if format == sharded_files.FORMAT else
                    translate("a plain file, which {path} is not"))
        raise ValueError(message(f"load_checkpoint({name!r})", expected.format(path=path)))
    if not is_of_kind:
        near = closest(path.name, [other.name for other in path.parent.glob(f"*.{format}")]) if path.parent.is_dir() else None
        hint = translate("there is {near!r}").format(near=near) if near else None
        raise ValueError(message(f"load_checkpoint({name!r})", translate("a file that exists: {path}").format(path=path), hint=hint))
    return path


def _prefixes(argument: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, (str, list, tuple)) or not all(isinstance(prefix, str) for prefix in value):
        raise TypeError(message(f"load_checkpoint({argument}={short(value)})", "a str, or a list or tuple of them"))
    prefixes = (value,) if isinstance(value, str) else tuple(value)
    if "" in prefixes:
        raise ValueError(message(f"load_checkpoint({argument}={value!r})", "prefixes that are not empty"))
    return prefixes


def _read(path: Path, format: str, is_checked_required: bool, secret: tuple[Any, Any]) -> list[Entry]:
    if format == "ckpt":
        entries, is_checked = checkpoint_file.read(path, *secret)
    else:
        stored = safetensors_files.read(path)
        entries, is_checked = [Entry(*item) for item in stored], safetensors_files.check(path, stored)
    if is_checked_required and not is_checked and secret[0] is None:
        _warn(f"load_checkpoint({str(path)!r}, crc_check=True): the file has no checksum, so that damage can't be detected",
              "save it again with save_checkpoint, which writes one")
    return entries


def load_checkpoint_async(
    ckpt_file_name: str, net: Cell | None = None, strict_load: bool = False, filter_prefix: Any = None, dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM", specify_prefix: Any = None, choice_func: Callable[[str], bool] | None = None,
) -> Future[dict[str, Any]]:
    """Runs `load_checkpoint` in a thread; `.result()` of the returned object waits for the Parameters and raises loading errors."""
    future: Future[dict[str, Any]] = Future()
    arguments = (ckpt_file_name, net, strict_load, filter_prefix, dec_key, dec_mode, specify_prefix, choice_func)

    def load() -> None:
        try:
            future.set_result(load_checkpoint(*arguments))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=load, name="torchspore-load", daemon=True).start()
    return future


def load_param_into_net(
    net: Cell, parameter_dict: dict[str, Parameter], strict_load: bool = False, remove_redundancy: bool = False
) -> tuple[list[str], list[str]]:
    """Loads Parameters into the ones of `net` with the same names. Returns the net's names that were missing, and the dict's that were not
    used.

    Floats are converted to the net's float type and integers to its integer type, unless `strict_load`. If all names of the dict have
    an additional prefix, it is removed. With `remove_redundancy`, which all processes must request, a Parameter that this dict lacks comes
    from a process whose dict has it and that has the same part. Raises TypeError for wrong types, RuntimeError if a shape or a type does
    not fit: then nothing is loaded.
    """
    if not isinstance(net, Cell):
        raise TypeError(message(f"load_param_into_net({short(net)}, ...)", with_type("a Cell", net)))
    if not isinstance(parameter_dict, dict):
        raise TypeError(message(f"load_param_into_net(..., {short(parameter_dict)})", with_type("a dict", parameter_dict)))
    for name, value in [("strict_load", strict_load), ("remove_redundancy", remove_redundancy)]:
        if not isinstance(value, bool):
            raise TypeError(message(f"load_param_into_net({name}={short(value)})", "True or False"))
    for key, value in parameter_dict.items():
        if not isinstance(key, str) or not isinstance(value, (Parameter, str)):
            subject = f"load_param_into_net(..., {{{short(key)}: {type(value).__name__}}})"
            raise TypeError(message(subject, "names with Parameters", hint="write mindspore.Parameter(tensor, name=...)"))
    parameters = [parameter for _, parameter in net.parameters_and_names()]
    pairs = [(parameter, parameter_dict[parameter.name]) for parameter in parameters if parameter.name in parameter_dict]
    missing = [parameter for parameter in parameters if parameter.name not in parameter_dict]
    if missing and not strict_load:
        prefixed = _with_prefix(missing, parameter_dict)
        pairs += prefixed
        taken = {id(parameter) for parameter, _ in prefixed}
        missing = [parameter for parameter in missing if id(parameter) not in taken]
    for parameter, value in pairs:
        _check_fits(parameter, value, strict_load)
    for parameter, value in pairs:
        if optimizer_shards.MARK in parameter.__dict__:
            value = wrap(optimizer_shards.local_rows(raw(value), parameter.__dict__[optimizer_shards.MARK]))
        cut = sharded_layout_of(parameter)
        if cut is not None and tuple(value.shape) == cut.shape:
            value = wrap(gather.part_of(raw(value), cut))
        parameter.set_data(value if tuple(value.shape) == tuple(parameter.shape) else value.reshape(parameter.shape))
    server_session.load([parameter for parameter, _ in pairs])
    names = {parameter.name for parameter in parameters}
    filled = set[str]()
    if remove_redundancy and settings.processes() > 1:
        from torchspore.distributed.shard import redundancy

        filled = redundancy.filled(parameters, {parameter.name for parameter, _ in pairs})
    absent = [parameter.name for parameter in missing if parameter.name not in filled]
    return absent, [name for name in parameter_dict if name not in names]


def _with_prefix(missing: list[Parameter], parameter_dict: dict[str, Any]) -> list[tuple[Parameter, Any]]:
    """Return the pairs that match after adding a prefix to the net's names."""
    for parameter in missing:
        for name in parameter_dict:
            if name.endswith(parameter.name):
                prefix = name[: -len(parameter.name)]
                return [(item, parameter_dict[prefix + item.name]) for item in missing if prefix + item.name in parameter_dict]
    return []


def _check_fits(parameter: Parameter, value: Any, strict: bool) -> None:
    subject = f"load_param_into_net: {parameter.name!r}"
    if not isinstance(value, Parameter):
        raise TypeError(message(f"{subject} of text", "a Parameter"))
    current, required = str(value.dtype), str(parameter.dtype)
    is_convertible = {current, required} <= _FLOATS or {current, required} <= _INTEGERS
    if current != required and (strict or not is_convertible):
        text = translate("{parameter} has the type {dtype} in the checkpoint").format(parameter=subject, dtype=current)
        raise RuntimeError(message(text, translate("{expected}, as in the net").format(expected=required)))
    share = parameter.__dict__.get(optimizer_shards.MARK)
    cut = sharded_layout_of(parameter)
    full_shape = share.full_shape if share is not None else cut.shape if cut is not None else tuple(parameter.shape)
    if cut is not None and tuple(value.shape) == tuple(parameter.shape):
        full_shape = tuple(parameter.shape)                      # a part that was saved without gathering
    shapes = tuple(value.shape), full_shape
    if shapes[0] != shapes[1] and shapes != ((1,), ()):
        hint = translate("the net is built with other sizes than the one that was saved")
        text = translate("{parameter} has the shape {shape} in the checkpoint").format(parameter=subject, shape=list(shapes[0]))
        raise RuntimeError(message(text, translate("{expected}, as in the net").format(expected=list(shapes[1])), hint=hint))
