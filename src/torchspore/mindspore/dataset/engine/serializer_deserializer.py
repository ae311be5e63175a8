"""A pipeline as JSON and back: `serialize`, `deserialize`, `compare`, `show`.

The form is MindSpore's: a dict for each step, with "op_type", the step's arguments by their names and its "children"; a transform is
{"tensor_op_name", "tensor_op_params"}, a sampler {"sampler_name", ...}. Only classes of mindspore.dataset are made of what a file names;
Python functions and objects stand there by name alone, and are refused when the pipeline is made again.
"""
from __future__ import annotations

import enum
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.files import read_plain, write_whole
from torchspore.base.suggest import closest
from torchspore.base.text import message, short
from torchspore.errors import FileFormatError
from torchspore.mindspore import log
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.dataset.core.operation import TensorOperation
from torchspore.mindspore.dataset.core.validator_helpers import check_type
from torchspore.mindspore.dataset.engine.dataset import Dataset
from torchspore.mindspore.dataset.engine.samplers import BuiltinSampler

_OTHER_NAMES = {"HwcToChw": "HWC2CHW", "ToPil": "ToPIL", "AdjustHue": "AdjustHue", "Map": "MapDataset", "Batch": "BatchDataset"}
"""MindSpore's own names in such files, where they are not the class's."""
_OURS_ALONE = ("connector_queue_size", "callback", "class_indexing", "extensions", "device_target", "offload", "recursive")
"""What MindSpore writes about its own engine."""
_OF_SAMPLERS = ("sampler_name", "child_sampler", "shuffle_mode", "reshuffle_each_epoch")
_NUMBERED = {
    "interpolation": ("Inter", ("LINEAR", "NEAREST", "CUBIC", "AREA", "PILCUBIC")),
    "resample": ("Inter", ("LINEAR", "NEAREST", "CUBIC", "AREA", "PILCUBIC")),
    "padding_mode": ("Border", ("CONSTANT", "EDGE", "REFLECT", "SYMMETRIC")),
}
"""What MindSpore writes as a number: the enum, and its members in their order there."""
_LONGEST_FILE = 64 * 2**20


def serialize(dataset: Dataset, json_filepath: str | None = None) -> dict[str, Any]:
    """The pipeline as a dict, written to the file as well. Raises TypeError for what is no Dataset, OSError.

    Functions and objects of the program's are told by name, with a warning: a file can't keep them.
    """
    check_type("serialize", "dataset", dataset, Dataset, "a Dataset")
    described = _described(dataset)
    if json_filepath is not None:
        check_type("serialize", "json_filepath", json_filepath, (str, Path), "a path")
        write_whole(Path(json_filepath).expanduser(), json.dumps(described, indent=2))
    return described


def deserialize(input_dict: dict[str, Any] | None = None, json_filepath: str | None = None) -> Dataset | None:
    """The pipeline that a dict or a file describes; None where neither is given. Raises ValueError, which says what can't be made."""
    if input_dict is not None:
        check_type("deserialize", "input_dict", input_dict, dict, "a dict, as serialize gives it")
        return _made(input_dict, 0)
    if json_filepath is None:
        return None
    check_type("deserialize", "json_filepath", json_filepath, (str, Path), "a path")
    path = Path(json_filepath).expanduser()
    if not path.is_file():
        raise ValueError(message(f"deserialize(json_filepath={str(json_filepath)!r})", f"a file that exists: {path.absolute()}"))
    if path.stat().st_size > _LONGEST_FILE:
        raise FileFormatError(message(f"{path}: {path.stat().st_size} bytes", f"at most {_LONGEST_FILE}"))
    try:
        return _made(json.loads(read_plain(path)), 0)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileFormatError(message(f"{path}: {error}", "a pipeline as JSON, as serialize writes it")) from None


def compare(pipeline1: Dataset, pipeline2: Dataset) -> bool:
    """Whether two pipelines have the same steps with the same arguments. Raises TypeError for what is no Dataset."""
    for name, pipeline in (("pipeline1", pipeline1), ("pipeline2", pipeline2)):
        check_type("compare", name, pipeline, Dataset, "a Dataset")
    return _described(pipeline1) == _described(pipeline2)


def show(dataset: Dataset, indentation: int = 2) -> None:
    """Writes the pipeline as JSON to MindSpore's log, at level INFO. In a notebook a Dataset shows itself as a picture."""
    check_type("show", "indentation", indentation, int, "an int")
    log.info(json.dumps(serialize(dataset), indent=indentation))


# Writing ---------------------------------------------------------------------------------------------------------------------------------


def _described(dataset: Dataset) -> dict[str, Any]:
    given = dict(getattr(dataset, "_given", {}))
    name = type(dataset).__name__
    children = {"children", "input_dataset", "datasets"}
    described = {"op_type": name.removesuffix("Dataset") if dataset.children else name}
    described |= {key: _plain(value, f"{name}({key}=...)") for key, value in given.items() if key not in children and value is not None}
    return {**described, "children": [_described(child) for child in dataset.children]}


def _plain(value: Any, where: str) -> Any:
    """A value as JSON has it."""
    if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, enum.Enum):
        return {"enum": type(value).__name__, "member": value.name}
    if isinstance(value, (list, tuple, range)):
        return [_plain(one, where) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one, where) for key, one in value.items()}
    if isinstance(value, TensorOperation):
        params = {key: _plain(one, where) for key, one in getattr(value, "_given", {}).items()}
        return {"tensor_op_name": type(value).__name__, "tensor_op_params": params}
    if isinstance(value, BuiltinSampler):
        child = getattr(value, "child_sampler", None)
        children = [] if child is None else [_plain(child, where)]
        own = {key: _plain(one, where) for key, one in getattr(value, "_given", {}).items()}
        return {"sampler_name": type(value).__name__, **own, **({"child_sampler": children} if children else {})}
    if isinstance(value, mstype.Type):
        return {"dtype": str(value)}
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.size <= _SMALL):
        return {"array": value.tolist(), "numpy": str(value.dtype)} if isinstance(value, np.ndarray) else value.item()
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"numpy": np.dtype(value).name}
    if isinstance(value, Path):
        return str(value)
    called = getattr(value, "__name__", None) or type(value).__name__
    log.warning(f"serialize: {where} holds {called!r} of the program's, which no file can keep; deserialize will refuse it")
    return {"python": called}


_SMALL = 4096
"""Values of an array that is written down."""


# Reading ---------------------------------------------------------------------------------------------------------------------------------


def _made(described: Any, depth: int) -> Dataset:
    if not isinstance(described, dict) or not isinstance(described.get("op_type"), str) or depth > _DEEPEST:
        raise ValueError(message(f"deserialize: {short(described)}", "a dict with 'op_type' and 'children'"))
    name, listed = described["op_type"], described.get("children", [])
    if not isinstance(listed, list):
        raise ValueError(message(f"deserialize: children of {name!r:.60}", "a list"))
    cls = _class_of(name, bool(listed))
    children = [_made(child, depth + 1) for child in listed]
    known = inspect.signature(cls.__init__).parameters
    given = {key: _value(value, f"{name}({key}=...)", key) for key, value in described.items() if key not in ("op_type", "children")}
    given = {key: value for key, value in given.items() if key not in _OURS_ALONE and not (value == [] and key.endswith("_columns"))}
    _check_known(name, given, known)
    if not children:
        return cls(**given)
    return cls(children[0] if len(children) == 1 and "datasets" not in known else tuple(children), **given)


_DEEPEST = 200
"""Steps of a pipeline, one upon the other."""


def _class_of(name: str, has_children: bool) -> type[Dataset]:
    from torchspore.mindspore.dataset.engine import datasets, mapping, operations

    wanted = _OTHER_NAMES.get(name, name if name.endswith("Dataset") or not has_children else f"{name}Dataset")
    for module in (datasets, mapping, operations):
        found = getattr(module, wanted, None)
        if isinstance(found, type) and issubclass(found, Dataset) and found is not Dataset:
            return found
    known = sorted(key for key, value in vars(datasets).items() if isinstance(value, type) and issubclass(value, Dataset))
    near = closest(wanted, known)
    hint = f"the nearest is {near!r}" if near else None
    raise ValueError(message(f"deserialize: op_type {name!r:.60}", "a source or a step of mindspore.dataset", hint=hint))


def _value(value: Any, where: str, key: str) -> Any:
    """A value of a file as a constructor takes it."""
    if isinstance(value, list):
        return [_value(one, where, key) for one in value]
    if type(value) is int and key in _NUMBERED and value < len(_NUMBERED[key][1]):
        return _enum(_NUMBERED[key][0], _NUMBERED[key][1][value], where)
    if key == "data_type" and isinstance(value, str):
        return getattr(mstype, value, value)
    if not isinstance(value, dict):
        return value
    if "python" in value or "python_module" in value:
        called = value.get("python") or value.get("tensor_op_name")
        hint = "make the pipeline by the program that has the function"
        raise ValueError(message(f"deserialize: {where}: {called!r} of a program's", "what a file can keep", hint=hint))
    if "tensor_op_name" in value:
        return _transform(value, where)
    if "sampler_name" in value:
        return _sampler(value, where)
    if "enum" in value and "member" in value:
        return _enum(value["enum"], value["member"], where)
    if set(value) == {"dtype"}:
        return getattr(mstype, str(value["dtype"]).lower(), value["dtype"])
    if "numpy" in value:
        return np.array(value["array"], np.dtype(str(value["numpy"]))) if "array" in value else np.dtype(str(value["numpy"])).type
    return {name: _value(one, where, name) for name, one in value.items()}


def _transform(described: dict[str, Any], where: str) -> Any:
    from torchspore.mindspore.dataset import text, transforms, vision

    name = _OTHER_NAMES.get(str(described["tensor_op_name"]), str(described["tensor_op_name"]))
    homes = [vision, transforms, text]
    cls = next((found for home in homes if isinstance(found := vars(home).get(name), type) and issubclass(found, TensorOperation)), None)
    if cls is None:
        raise ValueError(message(f"deserialize: {where}: {name!r:.60}", "a transform of mindspore.dataset"))
    params = described.get("tensor_op_params") or {}
    return _constructed(cls, params, where)


def _sampler(described: dict[str, Any], where: str) -> Any:
    from torchspore.mindspore.dataset.engine import samplers

    name = str(described["sampler_name"])
    cls = vars(samplers).get(name)
    if not (isinstance(cls, type) and issubclass(cls, BuiltinSampler)):
        raise ValueError(message(f"deserialize: {where}: {name!r:.60}", "a sampler of mindspore.dataset"))
    own = {key: value for key, value in described.items() if key not in _OF_SAMPLERS}
    if own.get("num_samples") == 0:
        own["num_samples"] = None                # MindSpore writes 0 for all
    made = _constructed(cls, own, where)
    for child in described.get("child_sampler", []):
        made.add_child(_value(child, where, "child_sampler"))
    return made


def _constructed(cls: type, params: Any, where: str) -> Any:
    if not isinstance(params, dict):
        raise ValueError(message(f"deserialize: {where}: parameters {short(params)}", "a dict"))
    known = inspect.signature(cls.__init__).parameters
    kept = {key: value for key, value in params.items() if key not in _OURS_ALONE or key in known}
    _check_known(cls.__name__, kept, known)
    return cls(**{key: _value(value, f"{cls.__name__}({key}=...)", key) for key, value in kept.items()})


def _check_known(name: str, given: dict[str, Any], known: Any) -> None:
    unknown = [key for key in given if key not in known]
    if unknown:
        wanted = ", ".join(key for key in known if key != "self") or "no argument"
        raise ValueError(message(f"deserialize: {name}({unknown[0]:.60}=...)", f"one of {wanted}"))


def _enum(kind: Any, member: Any, where: str) -> Any:
    from torchspore.mindspore.dataset import text, transforms, vision
    from torchspore.mindspore.dataset.engine import samplers

    homes = (vision, vision.utils, transforms, text, samplers)
    found = [getattr(home, str(kind), None) for home in homes]
    cls = next((one for one in found if isinstance(one, type) and issubclass(one, enum.Enum)), None)
    if cls is None or str(member) not in cls.__members__:
        raise ValueError(message(f"deserialize: {where}: {str(kind)[:40]}.{str(member)[:40]}", "a member of an enum of mindspore.dataset"))
    return cls[str(member)]
