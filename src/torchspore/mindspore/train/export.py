"""`export` writes a network as a file that other programs run; `load` reads a MINDIR file for `nn.GraphCell`."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchspore.base import encryption
from torchspore.base.files import READ_ONLY, write_atomically
from torchspore.base.text import list_choices, message, short
from torchspore.errors import FileFormatError
from torchspore.export.loaded_graph import LoadedGraph
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell

FORMATS = ("AIR", "ONNX", "MINDIR")
OPTIONS = ("enc_key", "enc_mode", "dataset", "incremental", "custom_func", "obf_config")


def export(net: Any, *inputs: Any, file_name: str, file_format: str, **kwargs: Any) -> None:
    """Writes `net`, a Cell or a function, for inputs of the shapes and dtypes of `inputs` to a file.

    `file_format` is 'MINDIR', which `load` and `nn.GraphCell` run here, or 'ONNX' (needs the libraries onnx and onnxscript), written in
    inference mode; 'AIR' runs only on Ascend processors and is refused. The suffix is added if `file_name` has none.
    `enc_key` (16, 24 or 32 bytes) with `enc_mode` ('AES-GCM', 'AES-CBC', 'SM4-CBC', or for every format a function of contents and key)
    encrypts the file; `custom_func(model)` may change the message of a MINDIR file before it is written.

    Raises TypeError and ValueError for invalid arguments, and ValueError for a call that can't be one graph.
    """
    path = _path(net, file_name, file_format, kwargs)
    tensors = tensors_of(inputs)
    call = f"export(file_format={file_format!r})"
    model = inference_model(net, tensors, call) if file_format == "ONNX" else _captured(net, tensors, call)
    content = _content(model, tensors, file_format, kwargs.get("custom_func"))
    write_atomically(path, _secret(content, kwargs), READ_ONLY)


def _path(net: Any, file_name: Any, file_format: Any, options: dict[str, Any]) -> Path:
    _check_arguments("export", net, file_name)
    if file_format not in FORMATS:
        raise ValueError(message(f"export(file_format={short(file_format)})", list_choices(FORMATS)))
    if file_format == "AIR":
        raise ValueError(message("export(file_format='AIR')", "'ONNX' or 'MINDIR': AIR files run only on Ascend processors"))
    unknown = next((name for name in options if name not in OPTIONS), None)
    if unknown is not None:
        raise ValueError(message(f"export({unknown}=...)", list_choices(OPTIONS)))
    for name in ("dataset", "incremental", "obf_config"):
        if options.get(name):
            raise ValueError(message(f"export({name}=...)", "None: a file contains only the network"))
    custom = options.get("custom_func")
    if custom is not None and (not callable(custom) or file_format != "MINDIR"):
        raise ValueError(message(f"export(custom_func=..., file_format={file_format!r})", "a function, with file_format='MINDIR'"))
    _check_secret(options, file_format)
    return full_path("export", net, file_name, f".{file_format.lower()}")


def full_path(call: str, net: Any, file_name: Any, suffix: str) -> Path:
    """Return the path of the file, in an existing folder. Raises TypeError for an invalid network or name."""
    _check_arguments(call, net, file_name)
    path = Path(file_name if file_name.endswith(suffix) else file_name + suffix).expanduser().absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _check_arguments(call: str, net: Any, file_name: Any) -> None:
    if not isinstance(net, Cell) and not callable(net):
        raise TypeError(message(f"{call}({short(net)}, ...)", f"a Cell or a function, got {type(net).__name__}"))
    if not isinstance(file_name, str):
        raise TypeError(message(f"{call}(file_name={short(file_name)})", f"a str, got {type(file_name).__name__}"))


def tensors_of(inputs: tuple[Any, ...]) -> list[Any]:
    """Return copies of the input Tensors, so that a Tensor passed twice becomes two inputs; tuples stay."""
    def as_tensor(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(map(as_tensor, value))
        return value.copy() if isinstance(value, Tensor) else value if value is None else Tensor(value)

    return [as_tensor(value) for value in inputs]


def inference_model(net: Any, inputs: list[Any], call: str) -> Any:
    """Return the graph and the parameters of a network in inference mode."""
    is_training = isinstance(net, Cell) and net.training
    if is_training:
        net.set_train(False)
    try:
        return _captured(net, inputs, call)
    finally:
        if is_training:
            net.set_train(True)


def _captured(net: Any, inputs: list[Any], call: str) -> Any:
    from torchspore.export import model

    function = net.construct if isinstance(net, Cell) else getattr(net, "__wrapped__", net)
    return model.captured(net, function, inputs, call)


def _content(model: Any, inputs: list[Any], file_format: str, custom: Callable[[Any], None] | None) -> bytes:
    if file_format == "ONNX":
        from torchspore.export import onnx

        return onnx.of_inputs(model, inputs, "export(file_format='ONNX')", onnx.Form())
    from torchspore.base.versions import MINDSPORE
    from torchspore.export import mindir

    proto = mindir.model_message(model, "export(file_format='MINDIR')", MINDSPORE)
    if custom is not None:
        custom(proto)
    return proto.SerializeToString()


def _check_secret(options: dict[str, Any], file_format: str) -> None:
    key, mode = options.get("enc_key"), options.get("enc_mode", "AES-GCM")
    if key is None or callable(mode):
        return
    if file_format != "MINDIR":
        call_text = f"export(enc_mode={short(mode)}, file_format={file_format!r})"
        raise ValueError(message(call_text, "a function: these files have no encryption mode"))
    encryption.check("export", "enc", key, mode)


def _secret(content: bytes, options: dict[str, Any]) -> bytes:
    key, mode = options.get("enc_key"), options.get("enc_mode", "AES-GCM")
    if key is None:
        return content
    if not callable(mode):
        return b"".join(encryption.encrypted(content, key, mode))
    encrypted = mode(content, key)
    if not isinstance(encrypted, bytes):
        raise TypeError(message(f"export(enc_mode={short(mode)})", f"a function that returns bytes, got {type(encrypted).__name__}"))
    return encrypted


def load(file_name: str, **kwargs: Any) -> LoadedGraph:
    """Returns the graph of a MINDIR file that `export` wrote, for `nn.GraphCell`; `dec_key` and `dec_mode` are those of the encryption.

    Files of MindSpore itself are read if all operators are supported. Raises TypeError and ValueError for arguments and FileFormatError (a
    ValueError), which names the file and the reason, for one that can't be run.
    """
    if not isinstance(file_name, str):
        raise ValueError(message(f"load({short(file_name)})", f"a file name, got {type(file_name).__name__}"))
    unknown = next((name for name in kwargs if name not in ("dec_key", "dec_mode", "obf_func")), None)
    if unknown is not None or kwargs.get("obf_func"):
        raise ValueError(message(f"load({unknown or 'obf_func'}=...)", "dec_key or dec_mode"))
    path = Path(file_name if file_name.endswith(".mindir") else f"{file_name}.mindir").expanduser().absolute()
    if not path.is_file():
        raise ValueError(message(f"load({file_name!r})", f"a file that exists (looked for {path})"))
    key, mode = kwargs.get("dec_key"), kwargs.get("dec_mode", "AES-GCM")
    if key is not None and not callable(mode):
        encryption.check("load", "dec", key, mode)
    from torchspore.export import mindir, mindir_format

    try:
        return LoadedGraph(mindir.read(mindir_format.parsed(_plain(path.read_bytes(), key, mode))))
    except (encryption.NotDecrypted, mindir.Unreadable, ValueError) as error:
        raise FileFormatError(message(f"{path}: {error}", "a MINDIR file that runs here", hint="write it again with export")) from None


def load_mindir(file_name: str) -> Any:
    """Returns the ModelProto of a MINDIR file, for editing; `user_info` maps strings to strings. Raises ValueError for other files."""
    _check_file_name("load_mindir", file_name)
    path = Path(file_name).expanduser().absolute()
    if not path.is_file():
        raise ValueError(message(f"load_mindir({file_name!r})", f"a file that exists (looked for {path})"))
    from torchspore.export import mindir_format

    try:
        return mindir_format.parsed(path.read_bytes())
    except ValueError as error:
        raise FileFormatError(message(f"{path}: {error}", "a MINDIR file", hint="write it again with export")) from None


def save_mindir(model: Any, file_name: str) -> None:
    """Writes the ModelProto `model` of `load_mindir` to a file, whose name gets the suffix .mindir.

    Raises TypeError for another `model`, ValueError for an invalid file name.
    """
    from torchspore.export import mindir_format

    _check_file_name("save_mindir", file_name)
    if not isinstance(model, mindir_format.message("ModelProto")):
        raise TypeError(message(f"save_mindir({short(model)}, ...)", f"the result of load_mindir, got {type(model).__name__}"))
    path = Path(file_name if file_name.endswith(".mindir") else f"{file_name}.mindir").expanduser().absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, model.SerializeToString(), READ_ONLY)


def _check_file_name(call: str, file_name: Any) -> None:
    if not isinstance(file_name, str) or not file_name:
        raise ValueError(message(f"{call}({short(file_name)})", f"a file name, got {type(file_name).__name__}"))


def _plain(content: bytes, key: Any, mode: Any) -> bytes:
    if key is None:
        if encryption.is_encrypted(content):
            raise encryption.NotDecrypted("it is encrypted")
        return content
    return mode(content, key) if callable(mode) else encryption.decrypted(content, key, mode)
