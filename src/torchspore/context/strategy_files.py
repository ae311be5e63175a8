"""The strategy files of `set_op_strategy_config` and `AutoParallel`, until `reset_auto_parallel_context`."""
from __future__ import annotations

op_strategies: dict[str, str] = {}
"""The path of the file to write ('SAVE') or to read ('LOAD')."""
