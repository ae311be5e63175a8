"""Limits of the arguments of functions, as MindSpore 2.10 checks them: torch would compute something for a wrong kind or a wrong number."""
from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.base.function_parameters import parameters_of
from torchspore.base.text import message, short, with_type
from torchspore.mindspore.ops.declaration import argument_kinds, one_dtype
from torchspore.mindspore.ops.declaration.argument_kinds import flag, int_or_bool
from torchspore.mindspore.ops.declaration.limits import Rule, int_alone, lengths, optional, real, tensor, truth

_PLAIN = frozenset({bool, int, float, complex, str, type(None), tuple, list})
"""Rules check values of these classes; Tensors, numbers of graphs and NumPy's scalars pass."""
_PLAIN_OR_ARRAY = _PLAIN | {np.ndarray}
_IMMUTABLE = frozenset({bool, int, float, complex, str, type(None)})


def _all_ints(name: str, key: str, value: Any) -> None:
    """A tuple of ints."""
    if not isinstance(value, tuple) or not all(item.__class__ not in (float, str, type(None)) for item in value):
        raise TypeError(message(f"{name}({key}={short(value)})", with_type("a tuple of ints", value)))


def _probability(name: str, key: str, value: Any) -> None:
    """A float from 0 to 1."""
    if isinstance(value, (int, float)):
        real(least=0.0, most=1.0)(name, key, value)


def _above_0(name: str, key: str, value: Any) -> None:
    """A float above 0."""
    if not isinstance(value, float) or not value > 0:
        raise ValueError(message(f"{name}({key}={short(value)})", "a number above 0"))


_POSITIVE, _FROM_0 = lengths(), lengths(2, 3, least=0)
_FRACTION: dict[str, Rule] = {"kernel_size": lengths(2, 3), "return_indices": truth}
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
LIMITS: dict[str, dict[str, Rule]] = {
    "adaptive_avg_pool1d": {"output_size": _POSITIVE},
    "adaptive_max_pool2d": {"return_indices": truth},
    "affine_grid": {"align_corners": truth},
    "argmax": {"keepdim": flag},
    "batch_norm": {"momentum": real(least=0.0, most=1.0), "eps": real(above=0.0, most=1.0)},
    "bernoulli": {"p": _probability},
    "cross_entropy": {"label_smoothing": real(least=0.0, most=1.0)},
    "ctc_greedy_decoder": {"merge_repeated": truth},
    "ctc_loss": {"zero_infinity": truth},
    "dropout": {"training": flag},
    "dropout1d": {"training": truth},
    "fractional_max_pool2d": _FRACTION,
    "fractional_max_pool3d": _FRACTION,
    "gather": {"axis": int_alone, "batch_dims": int_alone},
    "gaussian_nll_loss": {"full": truth, "eps": _above_0},
    "grid_sample": {"align_corners": optional(truth)},
    "gumbel_softmax": {"hard": truth},
    "linspace": {"steps": _POSITIVE},
    "matrix_band_part": {"lower": int_alone, "upper": int_alone},
    "max_unpool1d": {"padding": lengths(1, least=0)},
    "max_unpool2d": {"padding": _FROM_0},
    "multi_margin_loss": {"p": int_alone},
    "multinomial": {"num_samples": _POSITIVE},
    "one_hot": {"depth": int_alone, "axis": int_alone},
    "prod": {"keep_dims": truth},
    "reverse_sequence": {"seq_dim": int_alone, "batch_dim": int_alone},
    "round": {"decimals": int_or_bool},
    "scatter_nd": {"shape": _all_ints},
    "std": {"ddof": int_or_bool},
    "std_mean": {"ddof": int_or_bool},
    "strided_slice": dict.fromkeys(_MASKS, lengths(least=0)),
    "svd": {"full_matrices": truth, "compute_uv": truth},
    "top_k": {"k": _POSITIVE, "sorted": truth},
    "topk": {"k": _POSITIVE, "largest": truth, "sorted": truth},
    "unsorted_segment_sum": {"num_segments": int_alone},
    "var": {"ddof": int_or_bool},
    "var_mean": {"ddof": int_or_bool},
}
"""By the name of a function, the rules of its parameters."""


def _apply(rule: Rule, name: str, key: str, value: Any) -> None:
    """Check an argument. The error does not repeat the name and the argument: the operator's boundary writes the complete call."""
    try:
        rule(name, key, value)
    except (TypeError, ValueError) as error:
        match = re.match(rf"{name}\({key}=.*?\)(?:: |：)(?=expected|应)", str(error), re.S)
        if match is None:
            raise
        raise type(error)(str(error)[match.end():]) from None


def _classes_of(rule: Rule) -> frozenset[type]:
    """Return the classes of the values that a rule checks."""
    return _PLAIN_OR_ARRAY if rule is tensor else _PLAIN


def _check_alone(rule: Rule, name: str, key: str, value: Any) -> None:
    rule(name, key, value)


def checks_of_operator(body: Callable[..., Any], names_call: bool = False) -> Callable[..., Any]:
    """Return the body of an operator with the checks that the tables have for its name."""
    name = body.__name__
    rules = {**argument_kinds.OPERATORS.get(name, {}), **LIMITS.get(name, {})}
    return _limited(body, rules, one_dtype.check_of(body, one_dtype.GROUPS.get(name, ()), one_dtype.SEQUENCES.get(name)), names_call)


def checks_of_family(body: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of `mint` or `mindspore.numpy` with the checks that the tables have for its name, other functions unchanged."""
    package, name = (body.__module__ or "").removeprefix("torchspore.mindspore.").partition(".")[0], body.__name__
    if package not in _FAMILIES:
        return body
    rules, groups = _FAMILIES[package]
    return _limited(body, rules.get(name, {}), one_dtype.check_of(body, groups.get(name, ()), None))


_FAMILIES = {"mint": (argument_kinds.MINT, one_dtype.MINT), "numpy": (argument_kinds.NUMPY, one_dtype.NUMPY)}


class _Accepted(dict[int, Any]):
    """Immutable objects that passed a rule, by their ids: layers pass the same objects again and again.

    A float, which layers compute, counts by its value.
    """

    _MOST = 256

    def __init__(self) -> None:
        super().__init__()
        self.floats: set[float] = set()

    def add(self, value: Any) -> None:
        """Store a value that passed, unless it can change."""
        if value.__class__ is float:
            if len(self.floats) >= self._MOST:
                self.floats.clear()
            self.floats.add(value)
        elif value.__class__ in _IMMUTABLE or (value.__class__ is tuple and all(item.__class__ in _IMMUTABLE for item in value)):
            if len(self) >= self._MOST:
                self.clear()
            self[id(value)] = value


def _limited(
    body: Callable[..., Any], rules: dict[str, Rule], check_dtypes: one_dtype.Check | None, names_call: bool = False,
) -> Callable[..., Any]:
    """Return a function with checks of its arguments, or unchanged if there are none.

    With `names_call` its errors begin with the call, because no operator's boundary writes it.
    """
    parameters = parameters_of(body).names if rules else ()
    by_position = [(parameters.index(key), key, rule, _classes_of(rule)) for key, rule in rules.items() if key in parameters]
    if not by_position and check_dtypes is None:
        return body
    least = min((position for position, _, _, _ in by_position), default=len(parameters))
    name = body.__name__.strip("_")
    check = _check_alone if names_call else _apply
    accepted = {key: _Accepted() for key in rules}

    @functools.wraps(body)
    def checked_body(*arguments: Any, **keywords: Any) -> Any:
        if len(arguments) > least:
            for position, key, rule, classes in by_position:
                if position < len(arguments):
                    value = arguments[position]
                    if value.__class__ not in classes:
                        continue
                    passed = accepted[key]
                    if (value not in passed.floats) if value.__class__ is float else passed.get(id(value), accepted) is not value:
                        check(rule, name, key, value)
                        passed.add(value)
        for key, value in keywords.items():
            if key not in rules or value.__class__ not in _classes_of(rules[key]):
                continue
            passed = accepted[key]
            if (value not in passed.floats) if value.__class__ is float else passed.get(id(value), accepted) is not value:
                check(rules[key], name, key, value)
                passed.add(value)
        if check_dtypes is not None:
            check_dtypes(arguments, keywords)
        return body(*arguments, **keywords)

    return checked_body
