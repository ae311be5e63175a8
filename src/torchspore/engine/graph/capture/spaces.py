"""Where names may stand, and what asks for names that are computed."""
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

from torchspore.engine.graph.capture.state import ClassNames


class Space:
    """Where names may stand: `holder` for what is read of it; `nearer` are the classes in which Python looks first.

    That a name of `absent` does not stand there counts too. `is_settled` says that what stands there is no way to anything else.
    """

    def __init__(
        self, holder: MutableMapping[str, Any], nearer: list[ClassNames] | None = None, held: Any = None, absent: Container[str] = (),
        is_settled: bool = False,
    ) -> None:
        self.holder, self.nearer, self.absent, self.is_settled = holder, nearer or [], absent, is_settled
        self.held: Any = holder if held is None else held


BY_NAME = frozenset((
    "getattr", "hasattr", "vars", "dir", "__dict__", "__getattribute__", "__getstate__", "eval", "exec", "locals", "format_map",
))
"""What asks an object for attributes whose names are computed, or for all."""
BY_VALUE: dict[int, Any] = {id(thing): thing for thing in (
    getattr, hasattr, vars, dir, eval, exec, operator.attrgetter, operator.methodcaller, copy.copy, copy.deepcopy, pickle.dump,
    pickle.dumps, dataclasses.asdict, dataclasses.astuple, dataclasses.replace, dataclasses.fields, json.dump, json.dumps, pprint.pprint,
    pprint.pformat, inspect.getmembers, inspect.getattr_static, object.__getattribute__,
)}
"""The same as things that may have another name in the program, and libraries' functions that do it; by their ids, as some have no hash."""
MATCHES = dis.opmap.get("MATCH_CLASS", -1)
