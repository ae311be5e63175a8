"""Checks of arguments that programs call, although they are internal to MindSpore: `Validator.check_positive_int(size, "size")`."""
from __future__ import annotations

_RELATIONS = {
    "EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "INC_NEITHER": "()", "INC_LEFT": "[)", "INC_RIGHT": "(]",
    "INC_BOTH": "[]",
}
_AGAINST_ZERO = {"positive": ">", "negative": "<", "non_positive": "<=", "non_negative": ">="}
_NAMED = "arg_name=None, prim_name=None) ~arg_name prim_name"
RELATIONS = {f"_checkparam.{start}{name}": repr(sign) for name, sign in _RELATIONS.items() for start in ("", "Rel.")}
"""The numbers of relations, which are texts in a port."""


def lines() -> str:
    """Return the rules as a text."""
    rules = [
        f"check_equal_int(value, limit, {_NAMED} = @checked_number({{value}}, '==', {{limit}}, int)",
        f"check_int(value, limit, rel, {_NAMED} = @checked_number({{value}}, {{rel}}, {{limit}}, int)",
        f"check_float(value, limit, rel, {_NAMED} = @checked_number({{value}}, {{rel}}, {{limit}}, float)",
        f"check_int_range(value, lower, upper, rel, {_NAMED} = @checked_range({{value}}, {{rel}}, {{lower}}, {{upper}}, int)",
        f"check_float_range(value, lower, upper, rel, {_NAMED} = @checked_range({{value}}, {{rel}}, {{lower}}, {{upper}}, float)",
        f"check_bool(value, {_NAMED} = @checked_type({{value}}, bool)",
        f"check_is_int(value, {_NAMED} = @checked_type({{value}}, int)",
        f"check_is_float(value, {_NAMED} = @checked_type({{value}}, float)",
        f"check_string(value, choices, {_NAMED} = @checked_choice({{value}}, {{choices}})",
        "check_value_type(arg_name, value, types, prim_name=None) ~arg_name prim_name = @checked_type({value}, {types})",
    ]
    for kind in ("int", "float"):
        for name, sign in _AGAINST_ZERO.items():
            rules.append(f"check_{name}_{kind}(value, {_NAMED} = @checked_number({{value}}, {sign!r}, 0, {kind})")
    return "\n".join(f"_checkparam.{start}{rule}" for rule in rules for start in ("", "Validator."))
