"""Limits of the arguments of functions, as MindSpore 2.10 checks them: torch would compute something for a wrong kind or a wrong number."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torchspore.base.text import message, short, with_type
from torchspore.mindspore.ops.declaration.limits import Rule, int_alone, lengths, optional, real, truth

_PLAIN = frozenset({bool, int, float, complex, str, type(None), tuple, list})
"""Rules check values of these classes; Tensors, numbers of graphs and NumPy's scalars pass."""


def _flag(name: str, key: str, value: Any) -> None:
    """True or False; 0 and None, which MindSpore takes for False."""
    if value is not None and not (value.__class__ is int and value == 0):
        truth(name, key, value)


def _int_or_bool(name: str, key: str, value: Any) -> None:
    """An int or a bool."""
    if not isinstance(value, int):
        raise TypeError(message(f"{name}({key}={short(value)})", with_type("an int", value)))


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
    "argmax": {"keepdim": _flag},
    "batch_norm": {"momentum": real(least=0.0, most=1.0), "eps": real(above=0.0, most=1.0)},
    "bernoulli": {"p": _probability},
    "cross_entropy": {"label_smoothing": real(least=0.0, most=1.0)},
    "ctc_greedy_decoder": {"merge_repeated": truth},
    "ctc_loss": {"zero_infinity": truth},
    "dropout": {"training": _flag},
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
    "round": {"decimals": _int_or_bool},
    "scatter_nd": {"shape": _all_ints},
    "std": {"ddof": _int_or_bool},
    "std_mean": {"ddof": _int_or_bool},
    "strided_slice": dict.fromkeys(_MASKS, lengths(least=0)),
    "svd": {"full_matrices": truth, "compute_uv": truth},
    "top_k": {"k": _POSITIVE, "sorted": truth},
    "topk": {"k": _POSITIVE, "largest": truth, "sorted": truth},
    "unsorted_segment_sum": {"num_segments": int_alone},
    "var": {"ddof": _int_or_bool},
    "var_mean": {"ddof": _int_or_bool},
}
"""By the name of a function, the rules of its parameters."""


def _apply(rule: Rule, name: str, key: str, value: Any) -> None:
    """Check an argument. The error does not repeat the name and the argument: the operator's boundary writes the complete call."""
    try:
        rule(name, key, value)
    except (TypeError, ValueError) as error:
        call, separator, expectation = str(error).partition("): ")
        if not separator or not call.startswith(f"{name}({key}="):
            raise
        raise type(error)(expectation) from None


def limited(body: Callable[..., Any]) -> Callable[..., Any]:
    """Return the body of an operator with checks of the parameters that LIMITS names, or unchanged if there are none."""
    rules = LIMITS.get(body.__name__)
    if rules is None:
        return body
    parameters = list(inspect.signature(body).parameters)
    by_position = [(parameters.index(key), key, rule) for key, rule in rules.items() if key in parameters]
    least = min(position for position, _, _ in by_position)
    name = body.__name__

    @functools.wraps(body)
    def checked_body(*arguments: Any, **keywords: Any) -> Any:
        if len(arguments) > least:
            for position, key, rule in by_position:
                if position < len(arguments) and arguments[position].__class__ in _PLAIN:
                    _apply(rule, name, key, arguments[position])
        for key, value in keywords.items():
            if key in rules and value.__class__ in _PLAIN:
                _apply(rules[key], name, key, value)
        return body(*arguments, **keywords)

    return checked_body
