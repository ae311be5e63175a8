"""Split rules of torch's operators, by family; `rule_of` finds the rule of a call. An operator without a rule runs unsplit on each device.
"""
from __future__ import annotations

from torchspore.distributed.shard.propagation_rules import elementwise, images, indexing, matrices, products, reductions, shapes, updates
from torchspore.distributed.shard.propagation_rules.registry import OperatorCall, rule_of

__all__ = ["OperatorCall", "elementwise", "images", "indexing", "matrices", "products", "reductions", "rule_of", "shapes", "updates"]
