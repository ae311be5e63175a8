"""The padding of convolutions."""
from __future__ import annotations

import ast
from typing import Any

from torchspore.port.rules.rule import ANY, NoRule, literal

SAME_PADDING = "padding as in MindSpore's pad_mode='same': the input is padded by stride"


def dimension(call: Any) -> str:
    """Return "1d", "2d" or "3d" from the name of the layer that is called."""
    name = call.rewriter.source.mindspore_name(call.node.func) or ""
    return next((digits for digits in ("1d", "2d", "3d") if digits in name), "2d")


def torch_padding(call: Any) -> str:
    """Return torch's padding: MindSpore's four numbers are top, bottom, left, right."""
    value = call.value("padding")
    if isinstance(value, tuple) and len(value) == 4:
        if value[0] != value[1] or value[2] != value[3]:
            raise NoRule("a padding that differs between sides")
        return repr((value[0], value[2]))
    if isinstance(value, tuple) and len(value) == 6:
        if any(value[i] != value[i + 1] for i in (0, 2, 4)):
            raise NoRule("a padding that differs between sides")
        return repr(value[::2])
    if isinstance(call.argument("padding"), ast.Tuple) and value is ANY:
        elements = call.argument("padding").elts
        texts = [ast.dump(element) for element in elements]
        if len(elements) == 4 and texts[0] == texts[1] and texts[2] == texts[3]:
            return f"({call.rewriter.text(elements[0])}, {call.rewriter.text(elements[2])})"
        raise NoRule("a tuple as padding")
    text = str(call.text("padding"))
    return f"{call.helper('two_sided')}({text})" if value is ANY and _has_four_sides(call.rewriter.source) else text


def _has_four_sides(source: Any) -> bool:
    """Return whether a file passes four numbers, which may be a padding: top, bottom, left, right."""
    arguments = [argument for part in source.nodes if isinstance(part, ast.Call)
                 for argument in (*part.args, *(keyword.value for keyword in part.keywords))]
    values = [literal(argument) for argument in arguments if isinstance(argument, (ast.Tuple, ast.List))]
    return any(value is not ANY and len(value) == 4 and all(type(item) is int for item in value) for value in values)
