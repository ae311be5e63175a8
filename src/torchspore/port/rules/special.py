"""Rules that need more than a template. Each takes a Call and returns its text."""
from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import torch

from torchspore.port.rules import windows
from torchspore.port.rules.formats import setting, with_format
from torchspore.port.rules.initial import distribution, filled_in_place, initializer, is_integer, with_initial_values
from torchspore.port.rules.padding import SAME_PADDING, dimension, torch_padding
from torchspore.port.rules.rule import ANY, NoRule, literal

TRAINING = "a Module begins in training mode, a Cell of MindSpore in evaluation: call eval() before predictions"


def of_one_tensor(template: str, call: Any) -> str:
    """A function of one tensor; mindspore.numpy makes one of a number."""
    is_number = call.kind("x") == "python"
    return str(call.fill(template.replace("{x}", "torch.as_tensor({x})") if is_number else template))


# ---- layers


def dense(call: Any) -> str:
    """nn.Dense."""
    words = call.fill("{in_channels}, {out_channels}<, bias={has_bias}>")
    if call.has("activation") and call.value("activation") is not None:
        activation = call.value("activation")
        is_layer = isinstance(call.argument("activation"), ast.Call)
        text = call.text("activation") if is_layer else f"{call.helper('activation_named')}({call.text('activation')})"
        text = _activation_layer(call, activation) if isinstance(activation, str) else text
        layer = f"{call.helper('LinearWithActivation')}({words}, activation={text})"
    else:
        layer = f"nn.Linear({words})"
    return with_initial_values(call, layer, weight_init="weight", bias_init="bias")


_ACTIVATIONS = {
    "relu": "nn.ReLU()", "relu6": "nn.ReLU6()", "gelu": "nn.GELU(approximate='tanh')", "tanh": "nn.Tanh()", "sigmoid": "nn.Sigmoid()",
    "softmax": "nn.Softmax(dim=-1)", "leakyrelu": "nn.LeakyReLU(0.2)", "elu": "nn.ELU()", "hswish": "nn.Hardswish()", "silu": "nn.SiLU()",
    "hsigmoid": "nn.Hardsigmoid()", "logsoftmax": "nn.LogSoftmax(dim=-1)", "swish": "nn.SiLU()", "mish": "nn.Mish()", "softplus": "nn.Softplus()",
}


def _activation_layer(call: Any, name: str) -> str:
    if name.lower() not in _ACTIVATIONS:
        raise NoRule(f"the activation {name!r}")
    return _ACTIVATIONS[name.lower()]


def activation(call: Any) -> str:
    """nn.get_activation."""
    name = call.value("name")
    if isinstance(name, str):
        return _activation_layer(call, name)
    return f"{call.helper('activation_named')}({call.text('name')})"


def gelu(call: Any) -> str:
    """nn.GELU, whose default is the approximation."""
    value = call.value("approximate")
    if value is ANY:
        return f"nn.GELU(approximate='tanh' if {call.text('approximate')} else 'none')"
    return "nn.GELU(approximate='tanh')" if value else "nn.GELU()"


def conv(call: Any) -> str:
    """nn.Conv1d, Conv2d and Conv3d: `pad_mode` decides what `padding` means; no bias by default."""
    digits, mode = dimension(call), call.value("pad_mode")
    call.read.add("padding")                                 # which MindSpore refuses where the mode has no use of it
    words = [call.fill("{in_channels}, {out_channels}, {kernel_size}<, stride={stride}>")]
    layer = f"nn.Conv{digits}"
    mode = mode.lower() if isinstance(mode, str) else mode
    is_point = call.value("kernel_size") in (1, (1, 1), (1, 1, 1))
    if mode == "same" and not is_point:
        sizes = call.value("kernel_size")
        is_even = sizes is not ANY and any(size % 2 == 0 for size in (sizes if isinstance(sizes, tuple) else (sizes,)))
        if call.value("stride") in (1, (1, 1)) and not is_even:
            words.append("padding='same'")
        else:
            layer = call.helper(f"KeepSizeConv{digits}")
            call.note(SAME_PADDING)
    elif mode == "pad":
        if call.has("padding"):
            words.append(f"padding={torch_padding(call)}")
    elif mode not in ("valid", "same"):
        layer = call.helper(f"PaddedConv{digits}")
        words.append(call.fill("pad_mode={pad_mode}, padding={padding}"))
    words.append(call.fill("<dilation={dilation}>"))
    words.append(call.fill("<groups={group}>"))
    words.append("" if call.value("has_bias") is True else f"bias={call.text('has_bias')}")
    layer = f"{layer}({', '.join(word for word in words if word)})"
    return with_format(call, with_initial_values(call, layer, weight_init="weight", bias_init="bias"))


def conv_transpose(call: Any) -> str:
    """nn.Conv1dTranspose, Conv2dTranspose and Conv3dTranspose."""
    digits, mode = dimension(call), call.value("pad_mode")
    call.read.add("padding")                                 # which MindSpore refuses where the mode has no use of it
    mode = mode.lower() if isinstance(mode, str) else mode
    words = [call.fill("{in_channels}, {out_channels}, {kernel_size}<, stride={stride}>")]
    layer = f"nn.ConvTranspose{digits}"
    if mode == "same":
        layer = call.helper(f"KeepSizeConvTranspose{digits}")
        call.note("pad_mode='same': the output is stride times the input")
    elif mode == "pad":
        words.append(f"padding={torch_padding(call)}" if call.has("padding") else "")
        if "output_padding" in call.bound.defaults and call.has("output_padding"):
            words.append(call.fill("output_padding={output_padding}"))
            if digits == "2d":
                layer = call.helper("ConvTranspose2dWithZeros")
                call.note("MindSpore's output_padding appends zeros, torch's continues the convolution")
    elif mode == "valid":
        pass
    else:
        layer = call.helper(f"PaddedConvTranspose{digits}")
        words.append(call.fill("pad_mode={pad_mode}, padding={padding}"))
    words.append(call.fill("<groups={group}>"))
    words.append("" if call.value("has_bias") is True else f"bias={call.text('has_bias')}")
    words.append(call.fill("<dilation={dilation}>"))
    return with_initial_values(call, f"{layer}({', '.join(word for word in words if word)})", weight_init="weight", bias_init="bias")


def _torch_momentum(call: Any) -> str:
    value = call.value("momentum")
    if value is ANY:
        call.note("torch's momentum is 1 minus MindSpore's")
        return f", momentum=1 - {call.text('momentum', '+')}"
    if value == 0.9:
        return ""
    call.note("torch's momentum is 1 minus MindSpore's")
    node = call.argument("momentum")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and literal(node.left) == 1:
        return f", momentum={call.rewriter.text(node.right)}"
    return f", momentum={round(1 - value, 12)!r}"


def _with_affine(call: Any, layer: str) -> str:
    """Return the layer; with affine=False MindSpore has the parameters too, and does not train them."""
    return f"{call.helper('frozen')}({layer})" if call.value("affine") is False else layer


def _affine(call: Any) -> str:
    return "" if call.value("affine") is False else str(call.fill("<, affine={affine}>"))


def batch_norm(call: Any) -> str:
    """nn.BatchNorm1d, BatchNorm2d and BatchNorm3d."""
    call.note_once(TRAINING)
    has_choice = call.has("use_batch_statistics") and call.value("use_batch_statistics") is not True
    node = call.argument("momentum")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and literal(node.left) in (1, 1.0):
        momentum = f", momentum={call.rewriter.text(node.right)}"
        call.note("torch's momentum is 1 minus MindSpore's")
    else:
        momentum = _torch_momentum(call)
    statistics = ", track_running_stats=False" if call.value("use_batch_statistics") is True else ""
    layer = f"nn.BatchNorm{dimension(call)}({call.fill('{num_features}<, eps={eps}>')}{momentum}{_affine(call)}{statistics})"
    layer = with_initial_values(
        call, layer, gamma_init="weight", beta_init="bias", moving_mean_init="running_mean", moving_var_init="running_var")
    if has_choice:
        layer = f"{call.helper('with_statistics')}({layer}, {call.text('use_batch_statistics')})"
    return with_format(call, _with_affine(call, layer))


def layer_norm(call: Any) -> str:
    """nn.LayerNorm, whose epsilon is smaller."""
    if not call.has("epsilon"):
        call.note("MindSpore's default epsilon is 1e-7")
    layer = call.fill("nn.LayerNorm({normalized_shape}, eps={epsilon})").replace("1e-07", "1e-7")
    return with_initial_values(call, layer, gamma_init="weight", beta_init="bias")


def group_norm(call: Any) -> str:
    """nn.GroupNorm."""
    layer = call.fill("nn.GroupNorm({num_groups}, {num_channels}<, eps={eps}>") + f"{_affine(call)})"
    return _with_affine(call, with_initial_values(call, layer, gamma_init="weight", beta_init="bias"))


def instance_norm(call: Any) -> str:
    """nn.InstanceNorm2d: affine by default."""
    layer = f"nn.InstanceNorm{dimension(call)}({call.fill('{num_features}<, eps={eps}>, affine={affine}')})"
    return with_initial_values(call, layer, gamma_init="weight", beta_init="bias")


def dropout(call: Any) -> str:
    """nn.Dropout(keep_prob) or nn.Dropout(p=)."""
    call.note_once(TRAINING)
    if call.has("p"):
        return str(call.fill("nn.Dropout({p})"))
    call.note("torch's argument is the probability to drop")
    value = call.value("keep_prob")
    if value is not ANY:
        return f"nn.Dropout({round(1 - value, 12)!r})"
    return f"nn.Dropout(1 - {call.text('keep_prob', '+')})"


def embedding(call: Any) -> str:
    """nn.Embedding: initial values with the standard deviation 0.01; the row of `padding_idx` begins with zeros and is trained."""
    layer = call.fill("nn.Embedding({vocab_size}, {embedding_size})")
    if call.has("embedding_table"):
        layer = with_initial_values(call, layer, embedding_table="weight")
    else:
        call.note("MindSpore's initial values have the standard deviation 0.01, torch's 1")
        layer = f"{call.helper('initialized')}({layer}, weight=lambda weight: nn.init.normal_(weight, std=0.01))"
    if not call.has("padding_idx"):
        return layer
    call.note("MindSpore's padding_idx sets the row to 0 at the start only")
    return f"{call.helper('with_zero_row')}({layer}, {call.text('padding_idx')})"


def embedding_lookup(call: Any) -> str:
    """nn.EmbeddingLookup."""
    if call.has("max_norm"):
        raise NoRule("max_norm: torch writes the shortened rows into the weight")
    layer = call.fill("nn.Embedding({vocab_size}, {embedding_size})")
    if not call.has("param_init"):
        return f"{call.helper('initialized')}({layer}, weight=lambda weight: nn.init.normal_(weight, std=0.01))"
    return with_initial_values(call, layer, param_init="weight")


def sequential(call: Any) -> str:
    """nn.SequentialCell takes a list, or several Cells."""
    nodes = call.items("xs")
    if len(nodes) == 1 and not isinstance(nodes[0], ast.Starred):
        node = nodes[0]
        if isinstance(node, (ast.List, ast.Tuple)):
            begin, end = call.rewriter.source.span(node)
            inner = call.rewriter._spliced(begin + 1, end - 1, list(node.elts), {})
            inner = inner if "\n" in inner else inner.rstrip(", ") if isinstance(node, ast.Tuple) else inner
            return f"nn.Sequential({inner})"
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)) or call.kind_of(node) == "python":
            return f"nn.Sequential(*{call.rewriter.text(node, '+')})"
        if isinstance(node, ast.Call):
            name = call.rewriter.source.mindspore_name(node.func) or ""
            if name.startswith("nn.") or not isinstance(node.func, ast.Name) or node.func.id[:1].isupper():
                return f"nn.Sequential({call.rewriter.text(node)})"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("OrderedDict", "list", "tuple"):
            return f"nn.Sequential({call.rewriter.text(node)})"
        if isinstance(node, ast.Name) and _is_ordered_dict(call.rewriter.source, node.id):
            return f"nn.Sequential({node.id})"
        return f"{call.helper('sequence')}({call.rewriter.text(node)})"
    source = call.rewriter.source
    if len(nodes) < len(call.node.args) or call.node.keywords:
        return f"nn.Sequential({call.texts('xs')})"
    begin = source.text.index("(", source.span(call.node.func)[1]) + 1
    return f"nn.Sequential({call.rewriter._spliced(begin, source.span(call.node)[1] - 1, nodes, {})})"           # with its lines and comments


def _is_ordered_dict(source: Any, name: str) -> bool:
    """Return whether a name is assigned nothing but `OrderedDict(...)`."""
    values = [node.value for node in source.nodes if isinstance(node, ast.Assign) for target in node.targets
              if isinstance(target, ast.Name) and target.id == name]
    calls = [value for value in values if isinstance(value, ast.Call) and source.dotted(value.func) == "collections.OrderedDict"]
    is_argument = any(isinstance(node, ast.arg) and node.arg == name for node in source.nodes)
    return bool(calls) and len(calls) == len(values) and not is_argument


def clamp(call: Any) -> str:
    """ops.clamp; Tensors as bounds share the gradient where x is equal to one."""
    low, high = ("min", "max") if "min" in call.bound.defaults else ("clip_value_min", "clip_value_max")
    kinds = {call.kind(low), call.kind(high)}
    if "tensor" not in kinds and (low == "min" or kinds <= {"python", "numpy"}):
        return str(call.fill(f"torch.clamp({{x}}<, min={{{low}}}><, max={{{high}}}>)"))
    return str(call.fill(f"@clip_by_value({{x}}, {{{low}}}<, {{{high}}}>)"))


def norm(call: Any) -> str:
    """ops.norm, where an order of 1.0 or 2.0 (not an int) of matrices is the Frobenius norm."""
    template = "({x}<, ord={ord}><, dim={axis}><, keepdim={keep_dims}>)"
    order, axis = call.value("ord"), call.value("axis")
    is_plain = order is None or isinstance(order, (int, str)) or order in (float("inf"), -float("inf"))
    if is_plain or isinstance(axis, int):
        return str(call.fill("torch.linalg.norm" + template))
    return str(call.fill("@norm" + template))


def full(call: Any) -> str:
    """ops.full, whose result has integers without a dtype."""
    value = call.value("fill_value")
    is_tuple = isinstance(call.argument("shape"), (ast.Tuple, ast.List))
    shape = call.text("shape") if is_tuple else f"{call.helper('as_shape')}({call.text('shape')})"
    text = f"torch.full({shape}, {call.text('fill_value')}"
    if call.has("dtype") and call.value("dtype") is not None:
        return f"{text}, dtype={call.text('dtype')})"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{text})"
    call.note("without a dtype MindSpore's full gives integers")
    return f"{text}, dtype=torch.int64)"


def array_of(call: Any) -> str:
    """mnp.array, of numbers, lists of them or arrays: torch.as_tensor of a list of Tensors has no gradient."""
    node = call.argument("obj")
    is_literal = literal(node) is not ANY
    if isinstance(node, (ast.List, ast.Tuple)) and not is_literal and any(
            call.kind_of(part) in ("tensor", "unknown") for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute, ast.Call))):
        raise NoRule("a list that may have Tensors: write mnp.stack")
    return str(call.fill("torch.as_tensor({obj}<, dtype={dtype}>)"))


def conv2d(call: Any) -> str:
    """ops.Conv2D."""
    mode = str(call.value("pad_mode")).lower()
    if mode not in ("valid", "pad") or call.has("mode"):
        raise NoRule("another pad_mode than 'valid' and 'pad'")
    call.read.update(("pad", "mode"))
    padding = f", padding={call.text('pad')}" if mode == "pad" and call.has("pad") else ""
    if padding and isinstance(call.argument("pad"), (ast.Tuple, ast.List)):
        raise NoRule("several numbers as pad")
    return call.fill(f"F.conv2d({{x}}, {{weight}}<, stride={{stride}}>{padding}<, dilation={{dilation}}><, groups={{group}}>)")


def conv2d_transpose(call: Any) -> str:
    """ops.Conv2DTranspose."""
    mode = str(call.value("pad_mode")).lower()
    if mode not in ("valid", "pad") or call.has("pad_list") or call.has("mode"):
        raise NoRule("another pad_mode than 'valid' and 'pad'")
    call.read.update(("pad", "pad_list", "mode"))
    padding = f", padding={call.text('pad')}" if mode == "pad" else ""
    return call.fill(f"@conv2d_transpose({{x}}, {{weight}}, {{size}}<, {{stride}}>{padding}<, dilation={{dilation}}><, groups={{group}}>)")


def sparse_cross_entropy(call: Any) -> str:
    """nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")."""
    if call.value("sparse") is not True or call.value("reduction") != "mean":
        raise NoRule("probabilities")
    return f"{call.helper('CrossEntropyLoss')}()"


def set_train(call: Any) -> str:
    """Cell.set_train."""
    return str(call.fill("{self.}.eval()" if call.value("mode") is False else "{self.}.train(<, {mode}>)"))


# ---- tensors

def matmul(call: Any) -> str:
    """ops.MatMul and ops.BatchMatMul."""
    first, second = call.text("x", "."), call.text("y", ".")
    for name in ("transpose_a", "transpose_b"):
        if call.value(name) is ANY:
            raise NoRule(f"a {name} that is not a literal")
    first = f"{first}.mT" if call.value("transpose_a") else call.text("x")
    second = f"{second}.mT" if call.value("transpose_b") else call.text("y")
    return f"torch.matmul({first}, {second})"


def take(call: Any) -> str:
    """ops.gather: whole slices along an axis."""
    axis = call.value("axis")
    if call.has("batch_dims"):
        raise NoRule("batch_dims")
    if isinstance(axis, int) and 0 <= axis <= 3:
        return f"{call.text('x', '.')}[{':, ' * axis}{call.text('index')}]"
    return str(call.fill("@take({x}, {index}, {axis})"))


def gather_method(call: Any) -> str:
    """Tensor.gather: (index, axis), or torch's (dim, index)."""
    if isinstance(call.value("first"), int) or (call.kind("first") == "python" and call.kind("second") != "python"):
        return str(call.fill("{self.}.gather({first}, {second.}.long())"))
    axis = call.value("second")
    if isinstance(axis, int) and 0 <= axis <= 3:
        return f"{call.text('self', '.')}[{':, ' * axis}{call.text('first')}]"
    return str(call.fill("@take({self}, {first}, {second})"))


def extreme(call: Any) -> str:
    """Tensor.max and Tensor.min: without `return_indices` the values of an axis; with a position only, values and indexes."""
    name = call.node.func.attr
    if not call.has("axis"):
        if call.has("keep_dims") or call.has("return_indices"):
            raise NoRule("keepdims without an axis")
        return f"{call.text('self', '.')}.{name}()"
    names = {keyword.arg for keyword in call.node.keywords}
    text = call.fill(f"{{self.}}.{name}(dim={{axis}}<, keepdim={{keep_dims}}>)")
    if call.value("return_indices") is True or "dim" in names or call.node.args:
        return str(text)
    if call.has("return_indices"):
        raise NoRule("a return_indices that is not a literal")
    if isinstance(call.value("axis"), int):
        return f"{text}.values"
    return str(call.fill(f"@{'largest' if name == 'max' else 'smallest'}_along({{self}}, {{axis}}<, keepdim={{keep_dims}}>)"))


def other_in_torch(call: Any) -> str:
    """Methods of Tensors that torch's tensors have too, with another meaning."""
    raise NoRule("torch, whose method of that name returns something else")


def transpose(call: Any) -> str:
    """Tensor.transpose: all axes in their new order."""
    axes = call.items("axis")
    if not axes:
        return f"{call.helper('reverse_axes')}({call.text('self')})"
    if any(isinstance(axis, ast.Starred) for axis in axes):
        return str(call.fill("@transpose_axes({self}, {*axis})"))
    if len(axes) == 2:
        return str(call.fill("{self.}.transpose({*axis})"))
    return str(call.fill("{self.}.permute({*axis})"))


def cast(call: Any) -> str:
    """Tensor.astype; arrays of NumPy keep theirs."""
    value = call.value("dtype")
    dotted = call.rewriter.source.dotted(call.argument("dtype")) or ""
    if (dotted.startswith("numpy.") and hasattr(torch, dotted[6:])) or dotted == "numpy.bool_":
        value = dotted[6:].rstrip("_")
    if isinstance(value, str):
        return f"{call.text('self', '.')}.to(torch.{value})"
    return str(call.fill("{self.}.to({dtype})"))


def to_float(call: Any) -> str:
    """Cell.to_float: float32 is torch's default; the port computes in it instead of lower precisions."""
    dtype = call.text("dtype")
    if dtype == "torch.float32":
        return str(call.text("self"))
    call.note(f"float32 instead of {dtype.removeprefix('torch.')}: for lower precisions call the model under torch.autocast")
    return str(call.text("self"))


def mixed_precision(call: Any) -> str:
    """amp.auto_mixed_precision."""
    level = call.value("amp_level")
    if level not in ("O0", "O1", "O2", "O3", "auto"):
        raise NoRule("a level that the file does not show")
    if level == "O0":
        call.read.add("dtype")
        return str(call.text("network"))
    call.note("MindSpore lowers the precision by layers, torch.autocast by operators")
    return str(call.fill("@mixed_precision({network}<, dtype={dtype}>)"))


def set_data(call: Any) -> str:
    """Parameter.set_data."""
    if call.has("slice_shape"):
        call.read.add("slice_shape")
        return str(call.fill("@replace_data({self}, {value})"))
    if (text := filled_in_place(call)) is not None:
        return text
    return str(call.fill("{self.}.data.copy_({value})"))


def tensor(call: Any) -> str:
    """Tensor(value, dtype)."""
    name = "value" if "value" in call.bound.nodes else "input_data"
    dtype = f", dtype={call.text('dtype')}" if call.has("dtype") else ""
    if call.kind(name) == "tensor":
        return f"{call.text(name, '.')}.detach().clone()" + (f".to({call.text('dtype')})" if dtype else "")
    if call.kind(name) == "unknown" and call.rewriter.is_computing:
        return f"{call.helper('as_tensor')}({call.text(name)}{dtype})"
    return f"torch.tensor({call.text(name)}{dtype})"


def parameter(call: Any) -> str:
    """Parameter(value, name=, requires_grad=)."""
    name = "value" if "value" in call.bound.nodes else "default_input"
    value = literal(call.argument(name))
    text = call.text(name)
    if isinstance(value, (int, float, list, tuple)) or call.kind(name) == "numpy":
        text = f"torch.tensor({text})"
    elif call.kind(name) in ("python", "unknown"):           # a tensor, an array, a list or a number
        text = f"{call.helper('copied_tensor')}({text})"
    if not call.has("requires_grad") and is_integer(call, call.argument(name)):
        return f"nn.Parameter({text}, requires_grad=False)"
    return f"nn.Parameter({text}{call.fill('<, requires_grad={requires_grad}>')})"


def parameters_of_cell(call: Any) -> str:
    """Cell.trainable_params and Cell.get_parameters: with names in a file that reads these."""
    name = call.node.func.attr
    if call.rewriter.reads_names:
        call.rewriter.note_other_names()
        return str(call.fill(f"@{name}({{self}})"))
    if name == "get_parameters":
        return str(call.fill("{self.}.parameters()"))
    return str(call.fill("[parameter for parameter in {self.}.parameters() if parameter.requires_grad]"))


SPECIAL: dict[str, Callable[[Any], str]] = {
    function.__name__: function
    for function in (
        initializer, distribution, dense, activation, gelu, conv, conv_transpose, conv2d, conv2d_transpose, batch_norm, layer_norm, group_norm, instance_norm, dropout,
        embedding, embedding_lookup, sequential, clamp, other_in_torch, matmul, take, gather_method, extreme,
        transpose, cast, norm, full, array_of, setting, to_float, mixed_precision, set_data, tensor, parameter, parameters_of_cell, sparse_cross_entropy, set_train, *windows.RULES,
    )
}
