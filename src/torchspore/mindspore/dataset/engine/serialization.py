"""Conversion of pipelines to and from JSON: `serialize`, `deserialize`, `compare`, `show`.

A node is {"op_type", "children", its arguments}; a source that is read by index has a "sampler", a `map` a list of "operations", each
{"tensor_op_name", "tensor_op_params"}. These are MindSpore's names, so that both read each other's files if both know the operations.
Objects that a file can't store (functions, Python's generators) are written by name, and refused on reading.
"""
from __future__ import annotations

import inspect
import json
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base import json_text
from torchspore.base.files import write_atomically
from torchspore.base.suggest import closest
from torchspore.base.text import message, short
from torchspore.errors import FileFormatError
from torchspore.mindspore import log
from torchspore.mindspore.common.dtype import Type
from torchspore.mindspore.dataset.core.constructor_arguments import arguments
from torchspore.mindspore.dataset.core.operation import TensorOperation
from torchspore.mindspore.dataset.core.validator_helpers import check_type
from torchspore.mindspore.dataset.engine import samplers
from torchspore.mindspore.dataset.engine.dataset import Dataset
from torchspore.mindspore.dataset.engine.samplers import BuiltinSampler, Shuffle

_SAMPLERS: dict[str, tuple[str, ...]] = {
    "SequentialSampler": ("start_index", "num_samples"), "RandomSampler": ("replacement", "num_samples"),
    "SubsetSampler": ("indices", "num_samples"), "SubsetRandomSampler": ("indices", "num_samples"),
    "DistributedSampler": ("num_shards", "shard_id", "shuffle", "num_samples", "offset"),
    "PKSampler": ("num_val", "shuffle", "class_column", "num_samples"),
    "WeightedRandomSampler": ("weights", "num_samples", "replacement"),
}
_CHOOSING = {"sampler", "shuffle", "num_samples", "num_shards", "shard_id"}
"""Arguments of a source that its sampler includes."""
_OTHER_NAMES = {"HwcToChw": "HWC2CHW"}
_SHUFFLES = {0: False, 1: Shuffle.FILES, 2: Shuffle.GLOBAL, 3: Shuffle.INFILE}
_CHOICES = {"Inter": ("LINEAR", "NEAREST", "BICUBIC", "AREA", "PILCUBIC"), "Border": ("CONSTANT", "EDGE", "REFLECT", "SYMMETRIC")}
"""MindSpore's numbers in its files, which differ from those of its Python names."""
_PYTHON = "python_object"
"""The key for the name of an object that a file can't store."""
_ANEW = "a file can't store Python objects; build this part of the pipeline in the program"
_NODE_KEYS = {"op_type", "children", "sampler", "operations"}
_EXTRA_KEYS = {
    "connector_queue_size", "reset_each_epoch", "recursive", "callback", "children_sizes", "children_flag_and_nums",
    "children_start_end_index", "even_dist", "seed", "shuffle_mode", "reshuffle_each_epoch", "device_target", "rgb",
    "sampler_name", "child_sampler",
}
"""Fields that MindSpore writes in addition to the arguments."""


def serialize(dataset: Dataset, json_filepath: str = "") -> dict[str, Any]:
    """Returns the pipeline as a dict, and writes it to a JSON file if one is named. Raises OSError if that fails."""
    check_type("serialize", "dataset", dataset, Dataset, "a Dataset")
    check_type("serialize", "json_filepath", json_filepath, (str, Path), "a path")
    described = _node(dataset)
    if str(json_filepath):
        write_atomically(Path(json_filepath).expanduser(), json.dumps(described))
    return described


def deserialize(input_dict: dict[str, Any] | None = None, json_filepath: str | None = None) -> Dataset | None:
    """Returns the pipeline of a dict or a JSON file of `serialize`; None without either.

    Raises FileNotFoundError, and FileFormatError (a ValueError) for another file or one with objects that a file can't store.
    """
    if input_dict is not None:
        check_type("deserialize", "input_dict", input_dict, dict, "a dict that serialize returned")
        return _built("input_dict", input_dict)
    if not json_filepath:
        return None
    path = Path(json_filepath).expanduser()
    if not path.is_file():
        raise FileNotFoundError(message(f"deserialize(json_filepath={str(json_filepath)!r})", "a file that exists"))
    try:
        content = json_text.parse(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FileFormatError(message(f"{path}: {type(error).__name__}: {error!s:.100}", "a JSON file of serialize")) from None
    return _built(str(path), content)


def compare(pipeline1: Dataset, pipeline2: Dataset) -> bool:
    """Returns whether two pipelines have the same operations with the same arguments, in the same order."""
    return serialize(pipeline1) == serialize(pipeline2)


def show(dataset: Dataset, indentation: int | None = 2) -> None:
    """Logs the pipeline as JSON at level INFO; on one line if None."""
    if indentation is not None:
        check_type("show", "indentation", indentation, int, "an int or None")
    log.info(json.dumps(serialize(dataset), indent=indentation))


def to_json(dataset: Dataset, filename: str = "") -> str:
    """Return the pipeline as JSON, and write it to a file if one is named."""
    return json.dumps(serialize(dataset, filename))


# Writing ---------------------------------------------------------------------------------------------------------------------------------


def _node(dataset: Dataset) -> dict[str, Any]:
    kind, values = type(dataset).__name__, arguments(dataset)
    node: dict[str, Any] = {"op_type": kind.removesuffix("Dataset") if dataset.children else kind}
    node["children"] = [_node(child) for child in dataset.children]
    sampler = getattr(dataset, "sampler", None)
    if type(sampler).__name__ in _SAMPLERS and type(sampler).__module__ == samplers.__name__:
        node["sampler"] = _sampler(sampler)
        values = {name: value for name, value in values.items() if name not in _CHOOSING}
    for name, value in values.items():
        if name in ("operations", "operation"):
            node["operations"] = [_operation(operation) for operation in dataset.operations]  # type: ignore[attr-defined]
        elif not isinstance(value, Dataset) and name not in ("input_dataset", "datasets", "cache"):
            node[name] = _plain(value)
    return node


def _sampler(sampler: BuiltinSampler) -> dict[str, Any]:
    name = type(sampler).__name__
    node: dict[str, Any] = {"sampler_name": name}
    for key in _SAMPLERS[name]:
        value = sampler._subset_indices_ if key == "indices" else getattr(sampler, key)  # type: ignore[attr-defined]
        node[key] = _plain(value)
    if sampler.child_sampler is not None:
        node["child_sampler"] = [_sampler(sampler.child_sampler)]
    return node


def _operation(operation: Any) -> dict[str, Any]:
    if not isinstance(operation, TensorOperation):
        return {"tensor_op_name": getattr(operation, "__name__", type(operation).__name__), "python_module": type(operation).__module__}
    parameters = {key: _plain(value) for key, value in arguments(operation).items()}
    return {"tensor_op_name": type(operation).__name__, "tensor_op_params": parameters}


def _plain(value: Any) -> Any:
    """Convert a value to JSON; objects that JSON can't store, by name."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_operation(item) if isinstance(item, TensorOperation) else _plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Type):
        return str(value).lower()
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    return {_PYTHON: getattr(value, "__name__", None) or type(value).__name__}


# Reading ---------------------------------------------------------------------------------------------------------------------------------


def _refused(where: str, subject: str, expected: str, hint: str | None = None) -> FileFormatError:
    return FileFormatError(message(f"{where}: {subject}", expected, hint=hint))


def _built(where: str, node: Any) -> Dataset:
    from torchspore.mindspore.dataset.engine import datasets

    if not isinstance(node, dict) or not isinstance(node.get("op_type"), str) or not isinstance(node.get("children"), list):
        raise _refused(where, short(node), "an object with op_type and children")
    offered = {name: kind for name, kind in vars(datasets).items() if isinstance(kind, type) and issubclass(kind, Dataset)}
    kinds = {name.removesuffix("Dataset"): kind for name, kind in offered.items()}
    name = node["op_type"].removesuffix("Dataset")
    kind = kinds.get(name)
    if kind is None:
        near = closest(name, kinds)
        raise _refused(where, f"op_type {short(node['op_type'])}", "one that is known", f"did you mean {near!r}?" if near else None)
    children = [_built(where, child) for child in node["children"]]
    values = {key: value for key, value in node.items() if key not in _NODE_KEYS | _EXTRA_KEYS}
    if "operations" in node:
        values["operations"] = [_built_operation(where, operation) for operation in node["operations"]]
    if "sampler" in node and not children:
        values["sampler"] = _built_sampler(where, node["sampler"])
    return _called(where, kind, _first(name, children), values)


def _first(name: str, children: list[Dataset]) -> list[Any]:
    """Return a step's datasets in the form that its constructor takes."""
    return [tuple(children)] if name == "Zip" else [children] if name == "Concat" else list(children)


def _called(where: str, kind: Any, first: list[Any], content: dict[str, Any]) -> Any:
    """Create an object of a class from a file's content; MindSpore's values for 'none' become None."""
    parameters = inspect.signature(kind).parameters
    keywords = {}
    for name, value in content.items():
        if name not in parameters:
            raise _refused(where, f"{kind.__name__} with {short(name)}", f"its arguments, {', '.join(parameters)}")
        default = parameters[name].default
        if isinstance(value, dict) and isinstance(value.get(_PYTHON), str):
            raise _refused(where, f"{kind.__name__}({name}={value[_PYTHON]})", "a value that a file can store", _ANEW)
        if name in ("data_type", "output_type") and isinstance(value, str):
            value = _dtype(where, value)
        elif name == "shuffle" and type(value) is int:
            value = _SHUFFLES.get(value, value)
        elif name == "shuffle" and isinstance(value, str):
            value = _choice(where, Shuffle, value)
        elif isinstance(default, Enum) and value is not None and not isinstance(value, bool):
            value = _choice(where, type(default), value)
        elif name == "pad_info" and value == {}:
            pass                                 # {} pads all columns; None pads none
        elif default is None and (value in ([], {}) or (name == "num_samples" and value == 0)):
            value = None
        keywords[name] = value
    if keywords.get("num_shards") == 1 and keywords.get("shard_id") == 0:
        keywords["num_shards"] = keywords["shard_id"] = None
    remaining = list(parameters.items())[len(first) :]
    required = [name for name, parameter in remaining if parameter.default is parameter.empty and parameter.kind < 2]
    lacking = [name for name in required if name not in keywords]
    if lacking:
        raise _refused(where, f"{kind.__name__} without {lacking[0]!r}", "all that it is made of", _ANEW)
    try:
        return kind(*first, **keywords)
    except FileFormatError:
        raise
    except (TypeError, ValueError) as error:
        raise _refused(where, f"{kind.__name__}: {error!s:.200}", "arguments that it takes") from error


def _choice(where: str, kind: type[Enum], value: Any) -> Enum:
    numbered = _CHOICES.get(kind.__name__, ())
    name = numbered[value] if type(value) is int and 0 <= value < len(numbered) else value
    if name not in kind.__members__:
        raise _refused(where, f"{kind.__name__} {short(value)}", f"one of {', '.join(kind.__members__)}")
    return kind[name]


def _dtype(where: str, name: str) -> Any:
    from torchspore.mindspore.common import dtype

    dtype_object = getattr(dtype, name.lower(), None) or getattr(dtype, f"{name.lower()}_", None)
    if dtype_object is None:
        raise _refused(where, f"data type {short(name)}", "the name of a dtype")
    return dtype_object


def _built_sampler(where: str, node: Any) -> BuiltinSampler:
    if not isinstance(node, dict) or node.get("sampler_name") not in _SAMPLERS:
        raise _refused(where, f"sampler {short(node)}", f"an object with sampler_name, one of {', '.join(_SAMPLERS)}")
    name = node["sampler_name"]
    values = {key: value for key, value in node.items() if key in _SAMPLERS[name]}
    if "shuffle_mode" in node and name == "DistributedSampler":
        values.setdefault("shuffle", bool(node["shuffle_mode"]))
    if values.get("num_samples") == 0:
        del values["num_samples"]
    sampler = _called(where, getattr(samplers, name), [], values)
    for child in node.get("child_sampler") or []:
        sampler.add_child(_built_sampler(where, child))
    return sampler


def _built_operation(where: str, node: Any) -> Any:
    from torchspore.mindspore.dataset import audio, text, transforms, vision

    if not isinstance(node, dict) or not isinstance(node.get("tensor_op_name"), str):
        raise _refused(where, f"operation {short(node)}", "an object with tensor_op_name")
    name = _OTHER_NAMES.get(node["tensor_op_name"], node["tensor_op_name"])
    kinds = {key: kind for home in (audio, text, vision, transforms) for key, kind in vars(home).items() if _is_operation(kind)}
    if "python_module" in node or name not in kinds:
        raise _refused(where, f"operation {short(name)}", "a transform of mindspore.dataset", _ANEW)
    values = {key: value for key, value in (node.get("tensor_op_params") or {}).items() if key not in _EXTRA_KEYS}
    for key, value in values.items():
        if isinstance(value, list) and value and all(isinstance(item, dict) and "tensor_op_name" in item for item in value):
            values[key] = [_built_operation(where, item) for item in value]
    return _called(where, kinds[name], [], values)


def _is_operation(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, TensorOperation)
