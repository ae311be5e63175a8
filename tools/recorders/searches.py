"""Records the strategies that the searches of real MindSpore 2.10 choose for the networks of tests/parity/strategies/networks.py.

    tools/record.py searches --python .oracle/bin/python --plugin shared/clients/parallel_oracle.py

The plugin lets MindSpore compile for N devices without any. Writes tests/parity/strategies/searches.json: by network and search mode the
strategy of each product with a weight, as MindSpore's strategy file has it.
"""
from __future__ import annotations

import argparse
import importlib.util
import json
import tempfile
from pathlib import Path

from recorders import oracle


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subject."""
    parser.add_argument("--plugin", required=True, help="a Python file that lets MindSpore compile without devices")


def record_inside(arguments: argparse.Namespace) -> int:
    """Write the record."""
    spec = importlib.util.spec_from_file_location("parallel_oracle", arguments.plugin)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    from parity.strategies import networks

    strategies = {
        name: {mode: searched_strategies(name, mode, networks) for mode in networks.MODES} for name in networks.NETWORKS
    }
    path = oracle.ROOT / "tests" / "parity" / "strategies" / "searches.json"
    path.write_text(json.dumps(strategies, indent=1) + "\n")
    return 0


def searched_strategies(name: str, mode: str, networks) -> dict[str, list]:
    """Return the strategies that one search chooses, by the names of the products' Cells."""
    from mindspore import context
    from mindspore.common.api import _cell_graph_executor

    context.reset_auto_parallel_context()
    context.set_context(mode=0)
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "strategy.json"
        context.set_auto_parallel_context(
            device_num=networks.DEVICES, global_rank=0, parallel_mode="auto_parallel", search_mode=mode, full_batch=True,
            strategy_ckpt_config={"save_file": str(saved), "only_trainable_params": False},
        )
        strategies = {networks.PROPAGATED[name]: networks.PROPAGATED_STRATEGY} if mode == "sharding_propagation" else {}
        step, x = networks.training_step(name, strategies)
        _cell_graph_executor.compile(step, x)
        items = json.loads(saved.read_text())["parallel_strategy_item"]
    return {
        key.removeprefix("MatMul_").removesuffix(".weight"): item["parallel_strategy"] for key, item in items.items()
    }
