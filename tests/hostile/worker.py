"""Calls public names with hostile arguments, in this process. `worker.py FIRST STEP TRIES [ONLY]` prints one JSON line a finding;
HOSTILE=7 in the environment makes other tries.

It runs in a process of its own, under a limit of memory: a call may end it. Each target is named before it is tried.
"""
from __future__ import annotations

import contextlib
import enum
import importlib
import inspect
import io
import json
import os
import random
import re
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import torchspore

torchspore.install()
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))            # what the tests share

import mindspore as ms  # noqa: E402
import objects  # noqa: E402
from mindspore import Tensor, nn  # noqa: E402
from mindspore.dataset import Dataset, transforms, vision  # noqa: E402

from torchspore.errors import TorchsporeError  # noqa: E402
from torchspore.public_names import listing  # noqa: E402

MEMORY = 6 << 30
SECONDS = 20
"""Of the processor's time for one try; who waits for something else is found by who waits for the worker."""
OUT = os.fdopen(os.dup(1), "w")

PROMISED = (TypeError, ValueError, IndexError, ZeroDivisionError, OSError, StopIteration, NotImplementedError, TorchsporeError)
FOREIGN = re.compile(r"(?<![\w/])torch(?!spore)|aten::|\bat::|\bc10\b|SymInt|ScalarType|'_t'|alloc_cpu|enforce fail|TORCH_|<lambda>|<locals>")  # noqa: E501
CALL = re.compile(r"(?:\S+:\d+: )?['\w./]+(?:[^:\n]*: |\(\) (?:takes|got|missing))")

PASSED_OVER = {
    "mindspore.context": "changes what other calls do; tests/parity/context tries 814 calls of it",
    "mindspore.log": "writes what it is given",
    "mindspore.communication": "starts processes",
}


STATES = (
    "OcclusionSensitivity", "Profiler", "SummaryRecord", "SummaryCollector", "SymbolTree", "Node.", "flops_collection", "from_dlpack",
    "frombuffer",
    "numpy.cov", "FileWriter", "CsvToMR", "TransferDataset", "get_data_info",
)
"""Whose RuntimeError is MindSpore's own: of an object or a process in the wrong state, and of buffers and records that can't be read."""
TABLES = (
    "get_metric_fn", "get_metrics", "__getitem__", "comm_fusion", "operator_strategy_file", "get_strategy_metadata", "PipelineCell", "LR",
)
"""Whose KeyError is MindSpore's own: of a name in a table, or, odd as it is, a path that is not absolute."""


class NoObject(Exception):
    """No arguments are known that a class takes."""


def recursive() -> list[Any]:
    """A list that holds itself."""
    values: list[Any] = [1]
    values.append(values)
    return values


def deep() -> list[Any]:
    """A list nested 2,000 times."""
    values: list[Any] = [1.0]
    for _ in range(2000):
        values = [values]
    return values


def floats(*shape: int) -> Any:
    """A Tensor of floats."""
    return Tensor(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))


def network() -> Any:
    """A network of one layer."""
    return nn.Dense(3, 2)


GOOD: list[Callable[[], Any]] = [
    lambda: floats(2, 3), lambda: floats(1, 3, 8, 8), lambda: Tensor([1, 2, 0]), lambda: floats(3), lambda: 1, lambda: 0.5, lambda: (2, 3),
    lambda: "same", lambda: ms.float32, lambda: True, lambda: np.zeros((4, 5, 3), np.uint8), lambda: ms.Parameter(floats(3), name="p"),
    lambda: [ms.Parameter(floats(3), name="p")], lambda: nn.Dense(3, 2), lambda: 0, lambda: -1, lambda: max,
]
HOSTILE: list[Callable[[], Any]] = [
    lambda: None, lambda: 10**400, lambda: -(10**30), lambda: 2**63, lambda: 2**31, lambda: -5, lambda: float("nan"), lambda: float("inf"), lambda: 1e308,  # noqa: E501
    lambda: "", lambda: "no such thing", lambda: "\0", lambda: b"bytes", lambda: 1j, recursive, deep, list, lambda: (), dict,
    lambda: {"a": 1}, lambda: {1, 2}, object, lambda: int, lambda: len, lambda: (10**6, 10**6), lambda: (2**40, 2**40), lambda: (-1, -2),
    lambda: [1, "a"], lambda: [[1], [1, 2]], lambda: [None], lambda: (0, 0), lambda: floats(0), lambda: floats(0, 3), lambda: floats(),
    lambda: floats(1, 1, 1, 1, 1, 1, 1), lambda: Tensor([True, False]), lambda: Tensor(np.array([1, 2], np.uint16)), lambda: Tensor([1 + 2j]),  # noqa: E501
    lambda: Tensor(np.array([-(2**31), 2**31 - 1], np.int32)), lambda: Tensor([float("nan"), float("inf")]), lambda: Tensor([1.0], ms.float16),  # noqa: E501
    lambda: np.array([1, 2]), lambda: np.float64(3), lambda: np.int8(-3), lambda: np.array(["a"]), lambda: np.array([None]),
    lambda: np.zeros((0, 3)), lambda: np.array([1.5, np.nan]), lambda: slice(3, 1), lambda: ms.int8, lambda: ms.Tensor, lambda: range(3),
    lambda: np.bool_(True), lambda: iter([1]), lambda: Tensor(2**62), lambda: [floats(2), floats(3)], lambda: [floats(2), 3], lambda: ...,
]

BEGINNINGS: tuple[tuple[Callable[[], Any], ...], ...] = (
    (), (lambda: 3,), (lambda: 3, lambda: 4), (lambda: 3, lambda: 4, lambda: 3), (lambda: [1.0, 2.0],), (lambda: floats(2, 3),),
    (lambda: [ms.Parameter(floats(3), name="p")],), (lambda: [ms.Parameter(floats(3), name="p")], lambda: 0.1),
    (lambda: [ms.Parameter(floats(3), name="p")], lambda: 0.1, lambda: 0.9), (lambda: nn.Dense(3, 2),),
    (lambda: nn.Dense(3, 2), lambda: nn.MSELoss()), (lambda: 0.1, lambda: 0.01, lambda: 5), (lambda: 0.5,), (lambda: 0.1, lambda: 5),
    (lambda: 0.1, lambda: 0.01, lambda: 5, lambda: 0.5), (lambda: 0.1, lambda: 0.9, lambda: 5), (lambda: 0.1, lambda: 0.9, lambda: 5, lambda: 2),  # noqa: E501
    (network, lambda: nn.SGD(network().trainable_params())), (network, lambda: nn.SGD(network().trainable_params()), lambda: Tensor(2.0)),
    (lambda: [vision.Invert()],), (lambda: ms.int32,), (lambda: [1.0, 2.0, 3.0], lambda: [1.0, 2.0, 3.0]), (lambda: (0, 0), lambda: (2, 2)),
    (lambda: Tensor([[0, 1]]), lambda: floats(1), lambda: (2, 3)), (lambda: Tensor([0]), lambda: floats(1, 3), lambda: (2, 3)),
    (lambda: 2, lambda: 4), (lambda: 2, lambda: 0), (lambda: 0.1, lambda: network().trainable_params()), (lambda: np.uint8,),
    (lambda: transforms.Relational.EQ, lambda: 3), (lambda: vision.ConvertMode.COLOR_RGB2GRAY,), (lambda: [[(vision.Invert(), 0.5)]],),
    (lambda: ((1, 1), (2, 2)),), (lambda: nn.ReLU(),), (lambda: [0.1], lambda: 0.5),
    (lambda: ["a", "b"],), (lambda: [np.zeros((4, 5, 3), np.uint8)],), (lambda: [1, 2], lambda: ["a"]), (lambda: (2, 2),),
)
"""Arguments among which most constructors find some that they take."""


def targets() -> Iterator[tuple[str, Callable[[], Callable[..., Any]]]]:
    """Every public function, class and method, by its dotted path, and how to come by it."""
    seen: set[int] = set()
    for module, names in sorted(listing.offered().items()):
        if any(module.startswith(over) for over in PASSED_OVER):
            continue
        home = importlib.import_module(module)
        for name in sorted(names):
            try:
                value = getattr(home, name, None)
            except ImportError:                                # the name needs a package that is not installed
                continue
            if not callable(value) or id(value) in seen or not getattr(value, "__module__", "").startswith(("mindspore", "torchspore")):
                continue
            seen.add(id(value))
            if isinstance(value, type) and issubclass(value, enum.Enum):
                continue                                       # Python makes them
            if any(f"{over}.{name}" == f"{module}.{name}" for over in PASSED_OVER) or hasattr(importlib.import_module("mindspore.context"), name):  # noqa: E501
                continue
            yield f"{module}.{name}", lambda value=value: value
            if isinstance(value, type) and not issubclass(value, BaseException):
                for method in methods(value):
                    if f"{module}.{name}.{method}" in PASSED_OVER:
                        continue
                    yield f"{module}.{name}.{method}", lambda value=value, method=method: getattr(instance(value), method)


def methods(cls: type) -> list[str]:
    """The names of the public methods of a class that are its own, or its bases' where these are not offered themselves."""
    results = []
    for name in sorted(dir(cls)):
        if (name.startswith("_") and name not in ("__call__", "__getitem__", "__setitem__", "__floordiv__", "__pow__")) or name == "construct":  # noqa: E501
            continue
        owner = next((base for base in cls.__mro__ if name in vars(base)), object)
        shared = owner is not cls and cls.__name__ != "Parameter" and not owner.__name__.startswith("_") and name != "__call__"
        if callable(getattr(cls, name, None)) and not shared and owner is not type:
            results.append(name)
    return results


def instance(cls: type) -> Any:
    """An object of a class, by the first arguments that it takes. Raises NoObject where there are none."""
    if cls.__name__ in objects.OF and isinstance(instance_of_class := objects.OF[cls.__name__](), cls):
        return instance_of_class
    for beginning in BEGINNINGS:
        try:
            return cls(*[make() for make in beginning])
        except Exception:
            continue
    raise NoObject


def arguments(function: Any, draw: random.Random) -> tuple[list[Callable[[], Any]], dict[str, Callable[[], Any]]]:
    """So many makers of values, good and hostile ones; now and then by keywords, or with one that nobody has."""
    chosen = [draw.choice(GOOD if draw.random() < 0.45 else HOSTILE) for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 9)))]
    named = {"no_such_keyword": draw.choice(HOSTILE)} if draw.random() < 0.05 else {}
    if draw.random() < 0.3:
        left = parameters(function)[len(chosen) // 2:]
        chosen = chosen[:len(chosen) // 2]
        left = draw.sample(left, min(len(left), draw.randint(1, 3)))
        named |= {key: draw.choice(GOOD if draw.random() < 0.3 else HOSTILE) for key in left}
    return chosen, named


def parameters(function: Any) -> list[str]:
    """The names of the parameters that may be written as keywords."""
    try:
        return [p.name for p in inspect.signature(function).parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    except (TypeError, ValueError):
        return []


def is_promised(path: str, error: Exception) -> bool:
    """Whether this call may end with this kind of error (docs/differences.md)."""
    if isinstance(error, RuntimeError) and not isinstance(error, (RecursionError, *PROMISED)):
        # As in MindSpore: a metric without samples, a transform of what is no picture, a function of a pipeline that raises.
        return path.endswith((".eval", "_layout")) or path.startswith("mindspore.dataset.") or any(name in path for name in STATES)
    if type(error) is KeyError:
        return any(name in path for name in TABLES)
    if isinstance(error, ImportError):             # a library that only one name needs
        return "expected the library" in str(error)
    if type(error) is AttributeError:
        return "expected a method named construct" in str(error) or path.endswith(".to_str")
    return isinstance(error, PROMISED)


def attempt(path: str, function: Callable[..., Any], draw: random.Random) -> dict[str, str] | None:
    """One call; what is wrong with how it ended, or None."""
    makers, named = arguments(function, draw)
    values, keywords = [make() for make in makers], {key: make() for key, make in named.items()}
    try:
        out = function(*values, **keywords)
        if inspect.isgenerator(out):
            next(out, None)
        if isinstance(out, Dataset):
            next(out.create_tuple_iterator(num_epochs=1, output_numpy=True), None)
    except TimeoutError:
        return {"wrong": "hangs", "said": f"{len(values)} arguments: {shorten(values)}"}
    except Exception as error:
        return judged(path, error, [*values, *keywords.items()])
    return None


def judged(path: str, error: Exception, values: list[Any]) -> dict[str, str] | None:
    """What is wrong with an error."""
    try:
        text = str(error)
    except Exception as another:
        text, error = "", another
    problem = f"{type(error).__name__}: {text[:300]} <- {shorten(values)}"
    if not is_promised(path, error):
        return {"wrong": "kind", "said": problem}
    if FOREIGN.search(text.replace(".torch(", "(").replace(".from_torch", "")):
        return {"wrong": "torch's words", "said": problem}
    if isinstance(error, (StopIteration, NotImplementedError, KeyError)):
        return None
    if not text.strip():
        return {"wrong": "empty", "said": problem}
    if not CALL.match(text) and not set(path.split(".")[-2:]) & set(re.findall(r"\w+", text)):
        return {"wrong": "names no call", "said": problem}
    return None


def shorten(values: list[Any]) -> str:
    """Values in a few words."""
    words = []
    for value in values:
        try:
            words.append(" ".join(f"{value!r:.60}".split()) if not isinstance(value, list) else f"list of {len(value)}")
        except Exception:
            words.append(type(value).__name__)
    return ", ".join(words)


def tell(**fields: Any) -> None:
    """One line of JSON."""
    OUT.write(json.dumps(fields) + "\n")
    OUT.flush()


def expire(*_: Any) -> None:
    """The call takes too long."""
    raise TimeoutError


def main() -> None:
    """Tries the targets FIRST, FIRST + STEP, ..."""
    first, step, tries = map(int, sys.argv[1:4])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, expire)
    warnings.simplefilter("ignore")
    everything = list(targets())
    tell(targets=len(everything))
    for number in range(first, len(everything), step):
        path, come_by = everything[number]
        if len(sys.argv) > 4 and sys.argv[4] not in path:
            continue
        tell(begin=path, number=number)
        draw, count, reported_kinds = random.Random(path + os.environ.get("HOSTILE", "")), 0, set()
        try:
            come_by()
            objects.tidy()
        except NoObject:
            tell(path=path, passed_over="no object of this class is made without more")
            continue
        for _ in range(tries):
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    finding = attempt(path, come_by(), draw)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
                objects.tidy()
            if finding is not None:
                count += 1
                if finding["wrong"] not in reported_kinds:
                    reported_kinds.add(finding["wrong"])
                    tell(path=path, **finding)
                if finding["wrong"] == "hangs":
                    break
    tell(end=True)
    OUT.flush()
    os._exit(0)                                   # threads of loaders that were left behind need no farewell


if __name__ == "__main__":
    main()
