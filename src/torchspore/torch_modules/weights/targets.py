"""The torch model that `--like` names: from timm, transformers, torchvision, a module or a file. It is built without a download."""
from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from torchspore.base.text import message

_LIBRARIES = ("timm", "torchvision", "transformers")
FORMS = "timm:resnet50, torchvision:resnet50, transformers:BertModel with --config, package.module:Class or file.py:Class(width=4)"


class Call(NamedTuple):
    """The text of a target in parts: the library, module or file, the name in it, and its arguments."""

    home: str
    name: str
    positional: tuple[Any, ...]
    keywords: dict[str, Any]


def build(text: str, config: str | None = None, needs_values: bool = True) -> torch.nn.Module:
    """Build the torch model that `text` names, in evaluation mode. Its code runs: the user names it.

    Without `needs_values` the model has no memory if its code allows that. Raises ValueError if the text names no model.
    """
    call = parse(text)
    create = {"timm": _timm, "torchvision": _torchvision, "transformers": _transformers}.get(call.home, _other)
    if config is not None and call.home != "transformers":
        raise ValueError(message(f"--config with --like {text}", "transformers:CLASS, the models that have a configuration"))
    try:
        if not needs_values:
            try:
                with torch.device("meta"):
                    model = create(call, config)
            except (RuntimeError, NotImplementedError):          # code that reads values while it builds
                model = create(call, config)
        else:
            model = create(call, config)
    except (ImportError, AttributeError, OSError, TypeError, KeyError, RuntimeError, NotImplementedError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(message(f"--like {text}", f"a model that can be built, such as {FORMS} ({reason})")) from error
    if not isinstance(model, torch.nn.Module):
        raise ValueError(message(f"--like {text}", f"a torch.nn.Module, got {type(model).__name__}"))
    return model.eval()


def parse(text: str) -> Call:
    """Divide a target such as `file.py:Class(width=4)`. Raises ValueError for another form, and for arguments that are not constants."""
    head, parenthesis, arguments = text.partition("(")
    home, _, name = head.rpartition(":")
    if not home or not name:
        raise ValueError(message(f"--like {text}", FORMS))
    if not parenthesis:
        return Call(home, name, (), {})
    try:
        expression = ast.parse(f"call({arguments}", mode="eval").body
        if not isinstance(expression, ast.Call) or any(keyword.arg is None for keyword in expression.keywords):
            raise ValueError("not a call")
        positional = tuple(ast.literal_eval(argument) for argument in expression.args)
        keywords = {keyword.arg: ast.literal_eval(keyword.value) for keyword in expression.keywords if keyword.arg}
    except (SyntaxError, ValueError) as error:
        raise ValueError(message(f"--like {text}", f"arguments that are constants of Python, such as (width=4) ({error})")) from None
    return Call(home, name, positional, keywords)


def load(name: str) -> Any:
    """Import a module by its name, or by the path of its .py file. Raises ImportError and OSError."""
    if not name.endswith(".py"):
        return importlib.import_module(name)
    path = Path(name).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"{name} does not exist")
    module_name = path.stem if path.stem not in sys.modules else f"{path.stem} of {path.absolute().parent}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} is not a file of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module                            # dataclasses of the file look themselves up there
    sys.path.insert(0, str(path.absolute().parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def _other(call: Call, _: str | None) -> Any:
    value = load(call.home)
    for part in call.name.split("."):
        value = getattr(value, part)
    if isinstance(value, torch.nn.Module) and not call.positional and not call.keywords:
        return value
    create: Callable[..., Any] = value
    return create(*call.positional, **call.keywords)


def _timm(call: Call, _: str | None) -> Any:
    timm = importlib.import_module("timm")
    if not timm.is_model(call.name):
        names = ", ".join(timm.list_models(f"*{call.name[:5]}*")[:5])
        raise ValueError(message(f"timm:{call.name}", f"a model of timm {timm.__version__}{f', such as {names}' if names else ''}"))
    _refuse_download(call)
    return timm.create_model(call.name, *call.positional, **{"pretrained": False, **call.keywords})


def _torchvision(call: Call, _: str | None) -> Any:
    _refuse_download(call)
    return importlib.import_module("torchvision.models").get_model(call.name, *call.positional, **{"weights": None, **call.keywords})


def _refuse_download(call: Call) -> None:
    for name in ("pretrained", "weights"):
        if call.keywords.get(name):
            raise ValueError(message(f"{call.home}:{call.name}({name}={call.keywords[name]!r})", "a model without a download"))


def _transformers(call: Call, config: str | None) -> Any:
    library = importlib.import_module("transformers")
    settings = {} if config is None else _read_config(config)
    if hasattr(library, call.name):
        kind = getattr(library, call.name)
    else:
        folder = Path(call.name).expanduser()
        if not (folder / "config.json").is_file():
            expected = ("a class such as transformers:BertModel with --config FILE, or a folder that has a config.json: names of models on "
                        "the Hub would need a download")
            raise ValueError(message(f"transformers:{call.name}", expected))
        settings = {**_read_config(str(folder / "config.json")), **settings}
        architectures = settings.get("architectures")
        if not architectures or not hasattr(library, str(architectures[0])):
            raise ValueError(message(f"{folder}/config.json", "the class of the model in \"architectures\""))
        kind = getattr(library, str(architectures[0]))
    if getattr(kind, "config_class", None) is None:
        raise ValueError(message(f"transformers:{call.name}", "the class of a model, which has a configuration"))
    return kind(kind.config_class(**{**settings, **call.keywords}))


def _read_config(text: str) -> dict[str, Any]:
    """Return the JSON object of a file, or of the text itself."""
    try:
        values = json.loads(text if text.lstrip().startswith("{") else Path(text).expanduser().read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ValueError(message(f"--config {text:.60}", f"a file with a JSON object, or the object itself ({error})")) from None
    if not isinstance(values, dict):
        raise ValueError(message(f"--config {text:.60}", "a JSON object"))
    return values
