"""Checks that all processes run one program in one context when they first communicate; every process reports each difference."""
from __future__ import annotations

import hashlib
import json
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import torch

from torchspore.base.text import LONGEST_VALUE, short, show_full, with_hint
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE
from torchspore.distributed.comm import peer_liveness, rank_lists
from torchspore.distributed.comm.environment import ProcessInfo
from torchspore.distributed.comm.rank_states import slowed
from torchspore.errors import CommunicationError

_CONTEXT = ("mode", "device_target", "deterministic", "enable_auto_mixed_precision", "enable_reduce_precision")
"""Options of set_context, apart from those of set_auto_parallel_context, that change the computation and the exchanges."""
_RANK_DEPENDENT = ("global_rank", "file", "path", "strategy_ckpt")
"""Words in the names of options that each process may have for itself."""
PARALLEL = tuple(
    key for key, option in OPTIONS.items()
    if option.api == "auto_parallel" and key.count(".") == 1 and not any(word in option.name for word in _RANK_DEPENDENT)
)
"""The options of set_auto_parallel_context that must be equal on all processes."""


def facts() -> dict[str, str]:
    """Return the values that must be equal in all processes, by the names that people use for them."""
    version = str(getattr(sys.modules["torchspore"], "__version__", ""))
    facts = {"torchspore": version, "torch": torch.__version__, "the program": _program()}
    for key, option in OPTIONS.items():
        if key in PARALLEL:
            facts[f"set_auto_parallel_context({option.name})"] = describe_value(STORE.get(key))
        elif option.api == "context" and option.name in _CONTEXT:
            facts[f"set_context({option.name})"] = describe_value(STORE.get(key))
    return facts


def describe_value(value: object) -> str:
    """A value in few words that are others for another value."""
    full_text = show_full(value)
    return short(value) if len(full_text) <= LONGEST_VALUE else f"{short(value)} ({zlib.crc32(full_text.encode()):08x})"


def _program() -> str:
    """Return the program's file and a digest of its text; nothing without a file."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    if not path or not Path(path).is_file():
        return "(no file)"
    return f"{Path(path).name} {hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]}"


def agree(store: Any, process_info: ProcessInfo, seconds: float) -> None:
    """Meet the other processes and compare. Raises CommunicationError, on every process, if one differs or does not arrive within
    `seconds`."""
    store.set(f"facts/{process_info.rank}", json.dumps(facts()))
    try:
        if process_info.rank == 0:
            store.set("verdict", _verdict(store, process_info, seconds))
        else:
            _waited_for(store, "verdict", time.monotonic() + seconds + 5, process_info.size)
        verdict = store.get("verdict").decode()
    except (RuntimeError, OSError):
        raise CommunicationError(with_hint(
            f"init(): rank {process_info.rank} reached no process within {seconds:g} s, or rank 0 is gone.", "look at the output of rank 0",
        )) from None
    if verdict:
        raise CommunicationError(f"init() in rank {process_info.rank} of {process_info.size}: {verdict}")


def _verdict(store: Any, process_info: ProcessInfo, seconds: float) -> str:
    """Return the difference that all processes report; empty if there is none."""
    size = process_info.size
    until = time.monotonic() + seconds
    missing = [rank for rank in range(size) if not _comes(store, rank, until)]
    if missing:
        named = ", ".join(map(str, missing[:8])) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        hint = "look at its output; MS_TOPO_TIMEOUT sets another limit"
        if not peer_liveness.is_listening(process_info.host, process_info.port):
            hint = (
                f"{process_info.host}:{process_info.port} is unreachable: the address must be one of the machine that rank 0 runs on"
            )
        return with_hint(f"rank {named} did not come within {seconds:g} s.", hint)
    all_facts = [json.loads(text) for text in store.multi_get([f"facts/{rank}" for rank in range(size)])]
    lines = []
    for name in dict.fromkeys(name for facts in all_facts for name in facts):
        values: dict[str, list[int]] = {}
        for rank, facts in enumerate(all_facts):
            values.setdefault(facts.get(name, "its default"), []).append(rank)
        if len(values) > 1:
            lines.append(f"{name}: " + "; ".join(f"{value} in {rank_lists.describe(ranks)}" for value, ranks in values.items()))
    return with_hint("the processes differ.\n" + "\n".join(lines), "start one program with one context in all of them") if lines else ""


def _comes(store: Any, rank: int, until: float) -> bool:
    try:
        _waited_for(store, f"facts/{rank}", until)
    except (RuntimeError, OSError):
        return False
    return True


def _waited_for(store: Any, key: str, until: float, ranks: int = 1) -> None:
    """Wait for a key of the store, for which `ranks` ranks wait. torch would print a message about its own long wait. Raises OSError."""
    pause = 0.0005
    while not store.check([key]):
        if time.monotonic() > until:
            raise TimeoutError(key)
        time.sleep(pause)
        pause = min(1.5 * pause, slowed(0.02, ranks))
