"""Initial values: initializers of MindSpore as functions of torch.nn.init."""
from __future__ import annotations

import ast
from typing import Any

from torchspore.port.rules.rule import NoRule, bind, declare, literal

_INITIALIZERS = {
    "zeros": "nn.init.zeros_", "zero": "nn.init.zeros_", "ones": "nn.init.ones_", "one": "nn.init.ones_",
    "normal": "nn.init.normal_", "xavieruniform": "nn.init.xavier_uniform_", "xaviernormal": "nn.init.xavier_normal_",
    "heuniform": "nn.init.kaiming_uniform_", "henormal": "nn.init.kaiming_normal_", "uniform": "nn.init.uniform_",
    "truncatednormal": "nn.init.trunc_normal_",
}
_DEFAULT_VALUES = {
    **dict.fromkeys(("gamma_init", "moving_var_init"), ("ones", "one", 1)), **dict.fromkeys(("beta_init", "moving_mean_init"), ("zeros", "zero", 0)),
}
_STRING_ARGUMENTS = {
    "normal": ", std=0.01", "uniform": ", a=-0.07, b=0.07", "truncatednormal": ", std=0.01",
}


def _filling(call: Any, node: ast.expr) -> tuple[str, str] | None:
    """Return the torch function that fills a tensor, and its further arguments, for an initializer; None for an expression."""
    value = literal(node)
    if isinstance(value, str):
        name = value.lower().replace("_", "")
        if name not in _INITIALIZERS:
            raise NoRule(f"the initializer {value!r}")
        return _INITIALIZERS[name], _STRING_ARGUMENTS.get(name, "")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "nn.init.constant_", f", {value!r}"
    if isinstance(node, ast.Call):
        name = (call.rewriter.source.mindspore_name(node.func) or "").removeprefix("init.")
        return _distribution_filling(call, name, node)
    return None


def _distribution_filling(call: Any, name: str, node: ast.Call) -> tuple[str, str] | None:
    arguments = _named_arguments(name, node)
    if arguments is None:
        return None
    text = {key: call.rewriter.text(value, "+") for key, value in arguments.items()}
    gain = f", gain={text['gain']}" if "gain" in text else ""
    scaled = _scaled(text)
    fillings = {
        "Normal": ("nn.init.normal_", (f", mean={text['mean']}" if "mean" in text else "") + f", std={text.get('sigma', '0.01')}"),
        "Uniform": ("nn.init.uniform_", f", a=-{text.get('scale', '0.07')}, b={text.get('scale', '0.07')}"),
        "Constant": ("nn.init.constant_", f", {text.get('value', '0')}"), "Zero": ("nn.init.zeros_", ""), "One": ("nn.init.ones_", ""),
        "XavierUniform": ("nn.init.xavier_uniform_", gain), "XavierNormal": ("nn.init.xavier_normal_", gain),
        "HeUniform": ("nn.init.kaiming_uniform_", scaled), "HeNormal": ("nn.init.kaiming_normal_", scaled),
        "Orthogonal": ("nn.init.orthogonal_", gain), "TruncatedNormal": ("nn.init.trunc_normal_", _truncated(text)),
    }
    return fillings.get(name)


_PARAMETERS = {
    "Normal": "sigma mean", "Uniform": "scale", "Constant": "value", "Zero": "", "One": "", "XavierUniform": "gain", "XavierNormal": "gain",
    "HeUniform": "negative_slope mode nonlinearity", "HeNormal": "negative_slope mode nonlinearity", "Orthogonal": "gain",
    "TruncatedNormal": "sigma mean a b",
}


def _named_arguments(name: str, node: ast.Call) -> dict[str, ast.expr] | None:
    if name not in _PARAMETERS:
        return None
    named = dict(zip(_PARAMETERS[name].split(), node.args))
    named.update({keyword.arg: keyword.value for keyword in node.keywords if keyword.arg})
    return named


def _scaled(text: dict[str, str]) -> str:
    words = [f"a={text['negative_slope']}"] if "negative_slope" in text else []
    words += [f"{key}={text[key]}" for key in ("mode", "nonlinearity") if key in text]
    return "".join(f", {word}" for word in words)


def _truncated(text: dict[str, str]) -> str:
    sigma = text.get("sigma", "0.01")
    mean = f", mean={text['mean']}" if "mean" in text else ""
    bounds = "".join(f", {name}={text[name]}" for name in ("a", "b") if name in text)
    return f"{mean}, std={sigma}{bounds}"


def initializer(call: Any) -> str:
    """`initializer(Normal(0.02), shape, dtype)`: a tensor with initial values."""
    node = call.argument("init")
    if call.argument("shape") is None:
        raise NoRule("a call without shape")
    shape = call.argument("shape")
    size = call.text("shape")
    if isinstance(shape, (ast.Tuple, ast.List)) and shape.elts and not any(isinstance(element, ast.Starred) for element in shape.elts):
        size = ", ".join(call.rewriter.text(element) for element in shape.elts)
    dtype = f", dtype={call.text('dtype')}" if call.has("dtype") and call.text("dtype") != "torch.float32" else ""
    if call.kind("init") == "tensor":
        return f"{call.text('init', '.')}.reshape({size})"
    filling = _filling(call, node)
    if filling is None:
        return f"{call.helper('fill_initially')}(torch.empty({size}{dtype}), {call.text('init')})"
    function, rest = filling
    if function in ("nn.init.zeros_", "nn.init.ones_"):
        return f"torch.{function[8:-1]}({size}{dtype})"
    if function == "nn.init.constant_":
        sizes = call.text("shape") if isinstance(shape, (ast.Tuple, ast.List)) else f"{call.helper('as_shape')}({size})"
        return f"torch.full({sizes}, {rest[2:]}{dtype})"
    return f"{function}(torch.empty({size}{dtype}){rest})"


_INITIALIZER = declare("initializer(init, shape=None, dtype=float32)", "").parameters


def filled_in_place(call: Any) -> str | None:
    """`weight.set_data(initializer(Normal(), weight.shape, weight.dtype))`: `nn.init.normal_(weight)`; None for another value."""
    value, parameter = call.argument("value"), call.argument("self")
    source = call.rewriter.source
    if not (isinstance(value, ast.Call) and source.mindspore_name(value.func) in ("init.initializer", "initializer")):
        return None
    bound = bind(_INITIALIZER, value)
    owner = ast.unparse(parameter)
    same = {"shape": (f"{owner}.shape", f"{owner}.data.shape"), "dtype": (f"{owner}.dtype", f"{owner}.data.dtype")}
    if any(ast.unparse(bound.nodes[name]) not in same[name] for name in same if name in bound.nodes) or "shape" not in bound.nodes:
        return None
    filling = _filling(call, bound.nodes["init"])
    return f"{filling[0]}({call.text('self')}{filling[1]})" if filling is not None else None


def is_integer(call: Any, node: ast.expr | None) -> bool:
    """Return whether an expression shows that it is a tensor of integers or bools, which torch does not train."""
    if isinstance(node, ast.Call):
        words = [*node.args, *(keyword.value for keyword in node.keywords)]
        names = [(call.rewriter.source.mindspore_name(word) or "").rpartition(".")[2] for word in words]
        dtypes = [name for name in names if name.rstrip("0123456789_") in ("int", "uint", "bool", "float", "bfloat")]
        if dtypes:
            return "float" not in dtypes[-1]
        node = node.args[0] if node.args and call.rewriter.source.mindspore_name(node.func) == "Tensor" else None
    value = literal(node)
    return isinstance(value, (int, bool)) or (isinstance(value, (list, tuple)) and bool(value) and all(type(item) in (int, bool) for item in value))


def distribution(call: Any) -> str:
    """An initializer as a value: a function that fills a tensor."""
    name = (call.rewriter.source.mindspore_name(call.node.func) or "").split(".")[-1]
    filling = _distribution_filling(call, name, call.node)
    call.read.update(call.bound.nodes)
    assert filling is not None
    function, rest = filling
    return f"(lambda weight: {function}(weight{rest}))" if rest else function


def with_initial_values(call: Any, layer: str, **attributes: str) -> str:
    """Return the layer, filled where the call names initial values; `attributes`: argument -> attribute in torch."""
    fillings, is_plain = [], True
    for argument, attribute in attributes.items():
        node = call.argument(argument)
        if node is None or not call.has(argument) or literal(node) is None:
            continue
        if literal(node) in _DEFAULT_VALUES.get(argument, ()):
            continue
        if attribute == "bias" and call.bound.defaults.get("has_bias") is not None and call.value("has_bias") is False:
            continue
        if call.kind(argument) == "tensor":
            fillings.append(f"{attribute}={call.text(argument)}")
            is_plain = False
            continue
        filling = _filling(call, node)
        if filling is None:
            fillings.append(f"{attribute}={call.text(argument)}")
            is_plain = False
        else:
            function, rest = filling
            fillings.append(f"{attribute}=lambda {attribute}: {function}({attribute}{rest})" if rest else f"{attribute}={function}")
    if not fillings:
        return layer
    return f"{call.helper('initialized' if is_plain else 'initialized_by')}({layer}, {', '.join(fillings)})"
