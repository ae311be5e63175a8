"""Namespaces that a trace reads, and functions that read names computed at run time."""
from __future__ import annotations

import copy
import dataclasses
import dis
import inspect
import json
import operator
import pickle
import pprint
from collections.abc import Container, MutableMapping
from typing import Any

from torchspore.graph.capture.state import ClassNames


class Space:
    """A namespace: `holder` for reads of it; `nearer` are the classes that Python searches first.

    The absence of a name in `absent` counts too. `is_settled` means that the value of a name leads to no other state.
    """

    def __init__(
        self, holder: MutableMapping[str, Any], nearer: list[ClassNames] | None = None, owner: Any = None, absent: Container[str] = (),
        is_settled: bool = False,
    ) -> None:
        self.holder, self.nearer, self.absent, self.is_settled = holder, nearer or [], absent, is_settled
        self.origin: Any = holder if owner is None else owner


BY_NAME = frozenset(("vars", "dir", "__dict__", "__getattribute__", "__getstate__", "eval", "exec", "locals", "format_map"))
"""Names of functions that read attributes by computed names, or all attributes, without a way to observe which."""
TELL = {"getattr": getattr, "hasattr": hasattr}
"""Functions that report which attribute they read, during a trace in which a function names them."""
BY_VALUE: dict[int, Any] = {id(thing): thing for thing in (
    getattr, hasattr, vars, dir, eval, exec, operator.attrgetter, operator.methodcaller, copy.copy, copy.deepcopy, pickle.dump,
    pickle.dumps, dataclasses.asdict, dataclasses.astuple, dataclasses.replace, dataclasses.fields, json.dump, json.dumps, pprint.pprint,
    pprint.pformat, inspect.getmembers, inspect.getattr_static, object.__getattribute__,
)}
"""The same as things that may have another name in the program, and libraries' functions that do it; by their ids, as some have no hash."""
BY_MODULE = frozenset(("modules", "import_module", "__import__", "getmodule"))
"""Names that find a module by a name that may be in a variable."""
MATCHES = dis.opmap.get("MATCH_CLASS", -1)
ATTRIBUTE_OPERATIONS = {
    "trainable_params": "requires_grad", "untrainable_params": "requires_grad", "parameters_dict": "name", "check_names": "name",
    "parameters_broadcast_dict": "name",
}
"""Methods of Cells that read an attribute of their Parameters."""
GUARDED = ("print", "input", "open", *TELL)
"""Built-in functions that are replaced during a trace: they end it, or report their queries to it."""
AT_BIRTH = {"__init__", "__new__", "__post_init__", "__init_subclass__", "__repr__", "__str__"}
PYTHONS = {"__dict__", "__weakref__", "__doc__", "__module__", "__slots__", "__name__", "__qualname__", "__file__", "__builtins__"}
