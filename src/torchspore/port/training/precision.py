"""Mixed precision of a training: autocast around the forward pass, and the scale of the loss."""
from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from torchspore.port.rules.rule import NoRule, bind, declare, literal
from torchspore.port.rules.training import FIXED_SCALE
from torchspore.port.training.facts import LOSS_SCALES, Facts
from torchspore.port.training.optimizers import OptimizerWriter

_DYNAMIC = declare("DynamicLossScaleManager(init_loss_scale=2 ** 24, scale_factor=2, scale_window=2000)", "").parameters
WITHOUT_SCALE = "without a loss scale: in float32 it changes nothing"


@dataclass
class Precision:
    """The lines that a level of mixed precision needs."""

    before: list[str] = field(default_factory=list)
    header: str = ""
    """The statement around the forward pass."""
    scaler: str = ""
    fixed_scale: str = ""


class PrecisionWriter:
    """Writes mixed precision."""

    def __init__(self, rewriter: Any, facts: Facts, optimizers: OptimizerWriter) -> None:
        self.rewriter, self.facts, self.optimizers = rewriter, facts, optimizers

    def of_level(self, level_node: ast.expr | None, manager_node: ast.expr | None, network: str) -> Precision:
        """Return the lines of a level, such as "O2". Raises NoRule for one that the file does not show."""
        level = "O0" if level_node is None else literal(self.facts.value(level_node))
        if level not in ("O0", "O1", "O2", "O3", "auto"):
            raise NoRule(f"the level {ast.unparse(level_node) if level_node is not None else ''}")
        manager = self.facts.value(manager_node)
        has_manager = manager is not None and literal(manager) is not None
        if has_manager and self.facts.last_name(manager) not in LOSS_SCALES:  # type: ignore[arg-type]
            raise NoRule("a loss scale that the file does not show")
        result = Precision()
        if level == "O0":
            if has_manager:
                self.rewriter.note(WITHOUT_SCALE)
            return result
        self.rewriter.note("MindSpore lowers the precision by layers, torch.autocast by operators")
        device = f"next({network}.parameters()).device.type"
        result.header = f"with torch.autocast({device}, dtype=torch.float16):"
        if has_manager or (level == "O2" and manager_node is None):
            result.scaler = self.facts.fresh("scaler", "grad_scaler")
            words = self._scale(manager if has_manager else None, result)  # type: ignore[arg-type]
            result.before = [f"{result.scaler} = torch.amp.GradScaler({', '.join([device, *words])})"]
        return result

    def _scale(self, manager: ast.Call | None, result: Precision) -> list[str]:
        """Return the arguments of torch's GradScaler."""
        if manager is not None and self.facts.last_name(manager) == "FixedLossScaleManager":
            bound = bind(FIXED_SCALE, manager)
            result.fixed_scale = f"float({self.rewriter.text(bound.nodes['loss_scale'])})" if "loss_scale" in bound.nodes else "128.0"
            value = literal(bound.nodes.get("loss_scale"))
            result.fixed_scale = str(float(value)) if isinstance(value, (int, float)) else result.fixed_scale
            return [f"init_scale={result.fixed_scale}"]
        bound = bind(_DYNAMIC, manager) if manager is not None else bind(_DYNAMIC, ast.parse("f()", mode="eval").body)  # type: ignore[arg-type]
        text = lambda name, default: str(self.rewriter.text(bound.nodes[name], "+")) if name in bound.nodes else default
        words = [f"init_scale={text('init_loss_scale', '2.0**24')}"]
        if not bound.is_default("scale_factor"):
            words += [f"growth_factor={text('scale_factor', '')}", f"backoff_factor=1 / {text('scale_factor', '')}"]
        return words + ([f"growth_interval={text('scale_window', '')}"] if not bound.is_default("scale_window") else [])

    def step(self, precision: Precision, loss: str, value: str, optimizer: str) -> list[str]:
        """Return the lines of a step: the loss, its gradients, the update."""
        forward = [precision.header, f"    {loss} = {value}"] if precision.header else [f"{loss} = {value}"]
        first, *rest = self.optimizers.step(optimizer)
        if not precision.scaler:
            return [f"{optimizer}.zero_grad()", *forward, f"{loss}.backward()", first, *rest]
        scaler = precision.scaler
        if rest:                                             # not after a step that the scaler skips
            precision.before.append(f"{optimizer}.register_step_post_hook(lambda *_: {rest[0]})")
        return [
            f"{optimizer}.zero_grad()", *forward, f"{scaler}.scale({loss}).backward()", f"{scaler}.step({optimizer})",
            f"{scaler}.update({precision.fixed_scale})",
        ]
