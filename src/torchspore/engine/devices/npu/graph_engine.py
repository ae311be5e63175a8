"""Level O2 on Ascend: CANN's graph engine compiles the graph, through torchair, with the options of `ascend_config`.

Names: torchair of torch_npu 2.13 (`get_npu_backend`, `CompilerConfig.as_dict`, which returns the options of a session and those of the
process). CANN's names of options: its documentation of `aclgrphBuildInitialize` and of sessions.
"""
from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base import event_log
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import DEFAULT, STORE

Code = Callable[..., list[Any]]
_ORDERS = {"bfs": "0", "dfs": "1", "rdfs": "2"}
_APPLIED = Outcome.applied("handed to the graph engine")


def is_fit(module: torch.fx.GraphModule) -> bool:
    """Return whether all inputs are on one Ascend device and all operators are torch's own, which torchair supports."""
    values = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
    devices = {t.device for t in values if isinstance(t, torch.Tensor)}
    ours = any(node.op == "call_function" and getattr(node.target, "namespace", "aten") not in ("aten", "prims", "npu", "")
               for node in module.graph.nodes)
    return len(devices) == 1 and next(iter(devices)).type == "npu" and not ours


def compiled(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Code | None:
    """The graph as one piece for the device; None where torchair can't take it, which the log tells."""
    try:
        torchair = importlib.import_module("torchair")
    except ImportError as error:
        event_log.event("level", f"the graph engine is not here: {error}")
        return None
    backend = torchair.get_npu_backend(compiler_config=_config(torchair))
    try:
        with torch.no_grad():
            run = backend(module, inputs)
    except (RuntimeError, ValueError, AssertionError) as error:         # NotImplementedError is a RuntimeError
        event_log.event("level", f"the graph engine leaves it: {str(error).splitlines()[0] if str(error) else type(error).__name__:.120}")
        return None
    return lambda *inputs: list(run(*inputs))


def _config(torchair: Any) -> Any:
    """torchair's settings with the options of the context put over its own."""
    session, process = options()

    class Config(torchair.CompilerConfig):
        def as_dict(self) -> tuple[dict[str, str], dict[str, str]]:
            of_session, of_process = super().as_dict()
            return {**of_session, **session}, {**of_process, **process}

    return Config()


def options() -> tuple[dict[str, str], dict[str, str]]:
    """Return CANN's options of a session and of the process that `ascend_config` requests; `ge_options` overrides the other keys."""
    session: dict[str, str] = {}
    process: dict[str, str] = {}
    attributes_by_option = {
        "precision_mode": (process, "ge.exec.precision_mode"), "op_precision_mode": (process, "ge.exec.op_precision_mode"),
        "atomic_clean_policy": (session, "ge.exec.atomicCleanPolicy"),
        "host_scheduling_max_threshold": (session, "ge.exec.static_model_ops_lower_limit"),
    }
    for key, (where, name) in attributes_by_option.items():
        if _is_set(key):
            where[name] = str(STORE.get(key))
            effects.report(key, _APPLIED)
    if _is_set("topo_order"):
        _order(session)
    if _is_set("ge_options"):
        engine_options = json.loads(STORE.get("ge_options"))
        session.update(engine_options.get("session", {}))
        process.update(engine_options.get("global", {}))
        effects.report("ge_options", _APPLIED)
    return session, process


def _order(session: dict[str, str]) -> None:
    """One order for all graphs acts: MindSpore's numbers of graphs name nothing here."""
    orders = set(json.loads(STORE.get("topo_order")).values())
    if len(orders) == 1:
        session["ge.topoSortingMode"] = _ORDERS[orders.pop()]
        effects.report("topo_order", _APPLIED)
    elif orders:
        effects.report("topo_order", Outcome.no_effect("graphs have no numbers here; one order for all of them acts"))


def _is_set(key: str) -> bool:
    return STORE.source(key)[0] != DEFAULT and STORE.get(key) not in ("", None)
