"""The text that a port writes: expressions, statements, classes, imports, comments."""
from __future__ import annotations

import ast

import pytest

from torchspore.port import compat, rules
from torchspore.port.analysis.source import PortError, Source
from torchspore.port.rewriting import torch_file
from torchspore.port.rewriting.wrapping import wrap_long_lines
from torchspore.port.rules.rule import mentioned

HEAD = """import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops
from mindspore.common.initializer import Normal, initializer
from mindspore.ops import operations as P


class Net(nn.Cell):
    def __init__(self, size=4):
        super().__init__()
"""


def ported(init: str = "", construct: str = "return x", head: str = HEAD) -> torch_file.Ported:
    """Return the port of a Cell with these statements."""
    lines = [f"        {line}" for line in init.splitlines()] + ["", "    def construct(self, x, y=None):"]
    return torch_file.port(Source(head + "\n".join([*lines, *(f"        {line}" for line in construct.splitlines())]) + "\n"))


def body_of(result: torch_file.Ported, name: str) -> str:
    """Return the statements of a method of the ported Net."""
    assert not result.problems, result.problems
    net = next(node for node in ast.parse(result.text).body if isinstance(node, ast.ClassDef) and node.name == "Net")
    method = next(item for item in net.body if isinstance(item, ast.FunctionDef) and item.name == name)
    lines = result.text.splitlines()[method.lineno : method.end_lineno]
    return "\n".join(line.strip() for line in lines)


EXPRESSIONS = {
    "ops.concat((x, y), axis=1)": "torch.cat((x, y), dim=1)",
    "ops.transpose(x, (0, 2, 1))": "x.permute((0, 2, 1))",
    "x.transpose(0, 2, 1).view(-1, 4)": "x.permute(0, 2, 1).reshape(-1, 4)",
    "x.swapaxes(1, 2)": "x.transpose(1, 2)",
    "ops.mean(x + y, (2, 3), keep_dims=True)": "torch.mean(x + y, dim=(2, 3), keepdim=True)",
    "x.mean(axis=1, keep_dims=True)": "x.mean(dim=1, keepdim=True)",
    "x.sum()": "x.sum()",
    "x.std(axis=0)": "x.std(dim=0, correction=0)",
    "x.max(axis=1)": "x.max(dim=1).values",
    "x.max(axis=1, return_indices=True)": "x.max(dim=1)",
    "ops.add(x, y) * 2": "(x + y) * 2",
    "ops.mul(x - 1, -y)": "(x - 1) * (-y)",
    "(x + y).astype(ms.float32)": "(x + y).to(torch.float32)",
    "(x + y).expand_dims(0)": "(x + y).unsqueeze(0)",
    "ops.gather(x, y, 1)": "x[:, y]",
    "x.repeat(2, 0)": "x.repeat_interleave(2, dim=0)",
    "P.ReduceSum(keep_dims=True)(x, 1)": "torch.sum(x, dim=1, keepdim=True)",
    "P.BatchMatMul(transpose_b=True)(x, y)": "torch.matmul(x, y.mT)",
    "ops.softmax(x)": "F.softmax(x, dim=-1)",
    "ops.gelu(x)": "F.gelu(x)",
    "ops.zeros((2, x.shape[1]), ms.int32)": "torch.zeros((2, x.shape[1]), dtype=torch.int32)",
    "ops.stop_gradient(x).asnumpy()": "x.detach().detach().cpu().numpy()",
    "ops.one_hot(x, 4, Tensor(1.0), Tensor(0.0))": "one_hot(x, 4, torch.tensor(1.0), torch.tensor(0.0))",
    "mint.nn.functional.silu(mint.sum(x, dim=1))": "F.silu(torch.sum(x, dim=1))",
    "ops.clamp(x, min=0.0)": "torch.clamp(x, min=0.0)",
    "x.size + x.ndim": "x.numel() + x.ndim",
    "x[::-1]": "reverse(x, 0)",
    "ops.unstack(x, axis=1)": "torch.unbind(x, dim=1)",
    "ops.shape(x)[0]": "x.shape[0]",
    "list(map(ops.relu, (x, y)))": "list(map(torch.relu, (x, y)))",
    "ops.select(x > 0, x, y)": "select(x > 0, x, y)",
    "ops.cross_entropy(x, y, reduction='sum')": "F.cross_entropy(x, class_numbers(y), reduction='sum')",
    "x.split(2, axis=1)": "x.split(2, dim=1)",
    "np.arange(3).transpose(0)": "np.arange(3).transpose(0)",
    "'a b'.split(' ')": "'a b'.split(' ')",
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(expression: str) -> None:
    assert body_of(ported(construct=f"return {expression}"), "forward") == f"return {EXPRESSIONS[expression]}"


def test_order_of_equal_values() -> None:
    text = body_of(ported(construct="return ops.topk(x, 3)[0], ops.sort(x), ops.argsort(x)"), "forward")
    assert "# of equal values torch may select others than MindSpore\n" in text
    assert "torch.topk(x, 3)[0], torch.sort(x, stable=True), torch.argsort(x, stable=True)" in text


LAYERS = {
    "nn.Conv2d(3, 8, 3)": "nn.Conv2d(3, 8, 3, padding='same', bias=False)",
    "nn.Conv2d(3, 8, 3, stride=size)": "KeepSizeConv2d(3, 8, 3, stride=size, bias=False)",
    "nn.Conv2d(3, 8, 1, stride=2)": "nn.Conv2d(3, 8, 1, stride=2, bias=False)",
    "nn.Conv2d(3, 8, 3, 2, 'pad', 1, has_bias=True)": "nn.Conv2d(3, 8, 3, stride=2, padding=1)",
    "nn.Conv2d(3, 8, 3, pad_mode='valid', group=1, dilation=2)": "nn.Conv2d(3, 8, 3, dilation=2, bias=False)",
    "nn.Conv2d(3, 8, 3, pad_mode='pad', padding=(1, 1, 2, 2))": "nn.Conv2d(3, 8, 3, padding=(1, 2), bias=False)",
    "nn.Conv2d(3, 8, 3, pad_mode='valid', padding=size)": "nn.Conv2d(3, 8, 3, bias=False)",
    "nn.Dense(4, size)": "nn.Linear(4, size)",
    "nn.Dense(4, 2, has_bias=False)": "nn.Linear(4, 2, bias=False)",
    "nn.Dense(4, 2, activation='relu')": "LinearWithActivation(4, 2, activation=nn.ReLU())",
    "nn.Dense(4, 2, weight_init=Normal(0.02))": "initialized(nn.Linear(4, 2), weight=lambda weight: nn.init.normal_(weight, std=0.02))",
    "nn.BatchNorm2d(8, momentum=0.99, eps=1e-3)": "nn.BatchNorm2d(8, eps=1e-3, momentum=0.01)",
    "nn.BatchNorm2d(8, gamma_init=1)": "nn.BatchNorm2d(8)",
    "nn.LayerNorm((8,))": "nn.LayerNorm((8,), eps=1e-7)",
    "nn.Dropout(0.9)": "nn.Dropout(0.1)",
    "nn.Dropout(p=0.1)": "nn.Dropout(0.1)",
    "nn.GELU()": "nn.GELU(approximate='tanh')",
    "nn.GELU(approximate=False)": "nn.GELU()",
    "nn.LeakyReLU()": "nn.LeakyReLU(0.2)",
    "nn.MaxPool2d(2)": "nn.MaxPool2d(2, stride=1)",
    "nn.MaxPool2d(3, 2, 'same')": "KeepSizeMaxPool2d(3, 2)",
    "nn.AvgPool2d(2, 2)": "nn.AvgPool2d(2, stride=2)",
    "nn.SequentialCell([nn.Dense(4, 4), nn.ReLU()])": "nn.Sequential(nn.Linear(4, 4), nn.ReLU())",
    "nn.SequentialCell(nn.ReLU(), nn.Tanh())": "nn.Sequential(nn.ReLU(), nn.Tanh())",
    "nn.CellList([nn.ReLU() for _ in range(size)])": "nn.ModuleList([nn.ReLU() for _ in range(size)])",
    "nn.LSTM(4, 8, batch_first=True)": "LSTM(4, 8, batch_first=True)",
    "nn.SmoothL1Loss()": "nn.SmoothL1Loss(reduction='none')",
    "Parameter(initializer(Normal(0.02), (1, 4)), name='w')": "nn.Parameter(nn.init.normal_(torch.empty(1, 4), std=0.02))",
    "Parameter(initializer('zeros', [4]), 'b', requires_grad=False)": "nn.Parameter(torch.zeros(4), requires_grad=False)",
    "nn.Dense(4, 2, 'XavierUniform')": "initialized(nn.Linear(4, 2), weight=nn.init.xavier_uniform_)",
    "nn.Dense(4, 2).to_float(ms.float32)": "nn.Linear(4, 2)",
    "Parameter(initializer(0.5, (1, 4)))": "nn.Parameter(torch.full((1, 4), 0.5))",
    "nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction='mean')": "CrossEntropyLoss()",
    "Parameter(initializer(0.5, size))": "nn.Parameter(torch.full(as_shape(size), 0.5))",
    "Parameter(Tensor(np.ones(3), ms.float32))": "nn.Parameter(torch.tensor(np.ones(3), dtype=torch.float32))",
}


@pytest.mark.parametrize("layer", LAYERS)
def test_layers(layer: str) -> None:
    lines = body_of(ported(f"self.a = {layer}"), "__init__").splitlines()
    assert lines[-1] == f"self.a = {LAYERS[layer]}"


def test_primitives_are_written_where_they_are_called() -> None:
    result = ported("self.mean = P.ReduceMean(keep_dims=True)  # over the image\nself.add, self.relu = P.Add(), nn.ReLU()",
                    "return self.mean(self.relu(self.add(x, y)), (2, 3))")
    assert body_of(result, "__init__") == "super().__init__()\n# over the image\nself.relu = nn.ReLU()"
    assert body_of(result, "forward") == "return torch.mean(self.relu(x + y), dim=(2, 3), keepdim=True)"


def test_a_primitive_that_is_handed_on_is_a_function() -> None:
    result = ported("self.act = P.Tanh()\nself.sum = P.ReduceSum(keep_dims=size > 1)", "return apply(self.act, self.sum(x, 1))",
                    HEAD.replace("class Net", "def apply(f, x):\n    return f(x)\n\n\nclass Net"))
    assert "self.act = nn.Tanh()" in result.text
    assert "self.sum = (lambda x, axis=(): torch.sum(x, dim=axis, keepdim=size > 1))" in result.text


def test_constants_are_buffers_and_sums_are_not_in_place() -> None:
    result = ported("self.table = Tensor(np.eye(4), ms.float32)\nself.count = Parameter(Tensor(0.0), name='count')",
                    "x += self.table\ntotal = 0\ntotal += 1\nself.count += 1\nreturn x * total")
    assert 'self.register_buffer("table", torch.tensor(np.eye(4), dtype=torch.float32), persistent=False)' in result.text
    forward = body_of(result, "forward")
    assert "x = x + self.table" in forward and "total += 1" in forward and "assign(self.count, self.count + 1)" in forward


def test_comments_formatting_and_chinese_survive() -> None:
    construct = "# 卷积 then a sum\ny = ops.relu(  x )  # 激活\nif y is None:\n\n    y = x   # nothing\nreturn (x\n        + y)"
    forward = body_of(ported(construct=construct), "forward")
    assert forward == "# 卷积 then a sum\ny = torch.relu(x)  # 激活\nif y is None:\n\ny = x   # nothing\nreturn (x\n+ y)"


def test_tabs_and_star_imports() -> None:
    init = "\tdef __init__(self):\n\t\tsuper(Net, self).__init__()\n\t\tself.norm = BatchNorm2d(3, momentum=0.8)\n"
    construct = "\tdef construct(self, x):\n\t\treturn ops.relu(self.norm(x))\n"
    text = f"from mindspore.nn import *\nfrom mindspore import ops\n\nclass Net(Cell):\n{init}\n{construct}"
    result = torch_file.port(Source(text))
    assert "\t\t# torch's momentum is 1 minus MindSpore's\n\t\tself.norm = nn.BatchNorm2d(3, momentum=0.2)\n" in result.text
    assert "class Net(nn.Module):\n\tdef __init__(self):\n\t\tsuper().__init__()\n" in result.text


def test_mixins_and_bases_of_the_file_are_ported_too() -> None:
    mixin = "class Scale:\n    def scaled(self, x):\n        return ops.mul(x, 2)\n\n\n"
    head = HEAD.replace("class Net(nn.Cell)", f"{mixin}class Net(Scale, nn.Cell)")
    result = ported("", "return self.scaled(x)", head)
    assert "class Scale:" in result.text and "return x * 2" in result.text and "class Net(Scale, nn.Module):" in result.text


def test_a_local_name_that_a_helper_has() -> None:
    result = ported("", "one_hot = ops.one_hot(x, 3, Tensor(1.0), Tensor(0.0))\nreturn one_hot")
    assert "one_hot = torch_one_hot(x, 3," in result.text and "def torch_one_hot(" in result.text


def test_names_of_parameters() -> None:
    result = ported("self.net = nn.Dense(2, 2)\nself.params = [p for p in self.net.trainable_params() if 'bias' not in p.name]")
    expected = "[p for name, p in self.net.named_parameters() if p.requires_grad if 'bias' not in name]"
    assert expected in result.text


def test_what_has_no_rule_is_listed_with_its_line() -> None:
    result = ported("", "x = ops.CropAndResize(x)\nreturn ops.relu(x, where=3) + x[:, ::-2]")
    assert [(problem.line, problem.text) for problem in result.problems] == [
        (13, "ops.CropAndResize has no rule"), (14, "ops.relu has no rule for the argument where"),
        (14, "a slice with a negative step: torch has none"),
    ]
    assert result.text == ""


def test_an_argument_without_a_place_in_the_template_is_refused() -> None:
    problem, = ported(construct="return P.CumSum(exclusive=True)(x, 0) + P.CumSum(False)(x, 0)").problems
    assert problem.text == "ops.CumSum has no rule for the argument exclusive"


def test_lower_precision_is_a_comment() -> None:
    text = ported("self.a = nn.Dense(4, 2).to_float(ms.float16)").text
    assert """
        # float32 instead of float16: for lower precisions call the model under torch.autocast
        self.a = nn.Linear(4, 2)
""" in text


def test_training_is_omitted() -> None:
    step = "class Step(nn.TrainOneStepCell):\n    pass\n"
    other = "class Other(nn.Cell):\n    def construct(self, net, x):\n        return ops.GradOperation()(net)(x)\n"
    text = f"{HEAD}\n    def construct(self, x):\n        return x\n\n\n{step}\n\n{other}"
    result = torch_file.port(Source(text))
    assert result.classes == ["Net"] and sorted(result.omitted_classes) == ["Other", "Step"]
    with pytest.raises(PortError, match="no class of that name"):
        torch_file.port(Source(text), ["Nett"])


def test_only_what_a_class_needs_is_written() -> None:
    others = "SCALE = math.pi\nOTHER = os.sep\n\n\ndef unused(x):\n    return ops.sin(x)\n\n\n"
    head = "import os\nimport math\n" + HEAD.replace("class Net", f"{others}class Net")
    text = ported("", "return x * SCALE", head).text
    assert "import math" in text and "SCALE = math.pi" in text
    assert "OTHER" not in text and "import os" not in text and "unused" not in text and "numpy" not in text


def test_random_numbers_that_were_drawn_before() -> None:
    drawn = "random = np.random.RandomState(1)\na = random.rand(3)\nb = random.rand(3)\nc = random.rand(3)\n\n\n"
    head = HEAD.replace("class Net", f"{drawn}class Net")
    text = ported("self.b = Tensor(b)", "return x * self.b", head).text
    assert "a = random.rand(3)\nb = random.rand(3)\n" in text and "c = " not in text


def test_rules_name_helpers_and_arguments_that_exist() -> None:
    texts = compat.definitions()
    for name, declared in rules._all().items():
        for rule in declared:
            parameters = [*rule.parameters.args, *rule.parameters.kwonlyargs, *(rule.inputs.args if rule.inputs else [])]
            known = {argument.arg for argument in parameters} | {"self"}
            known |= {several.arg for several in (rule.parameters.vararg, rule.inputs.vararg if rule.inputs else None) if several}
            if isinstance(rule.template, str):
                assert mentioned(rule.template) <= known, name
                used = {part.split("(")[0] for part in rule.template.split("@")[1:]}
                assert used <= set(texts), (name, used)


def test_rules_are_for_names_of_mindspore() -> None:
    import mindspore
    from mindspore import Tensor, nn, ops

    homes = {"nn": nn, "ops": ops, "mnp": mindspore.numpy, "init": mindspore.common.initializer}
    for name in rules._all():
        home, _, last = name.rpartition(".")
        if name.startswith("."):
            assert hasattr(Tensor, last), name
        elif home in homes and home != "mnp":
            assert hasattr(homes[home], last), name


def test_lines_and_comments_between_layers_stay() -> None:
    text = ported("self.net = nn.SequentialCell(\n    nn.ReLU(),  # first\n    nn.Dense(size, size))").text
    assert "nn.Sequential(\n            nn.ReLU(),  # first\n            nn.Linear(size, size))" in text


def test_sequences_of_ordered_dicts() -> None:
    head = "from collections import OrderedDict\n" + HEAD.replace("class Net", """class Pair(nn.SequentialCell):
    def __init__(self):
        super().__init__(OrderedDict([('a', nn.ReLU())]))


class Net""")
    text = ported("layers = OrderedDict()\nlayers['a'] = Pair()\nself.net = nn.SequentialCell(layers)", head=head).text
    assert "super().__init__(OrderedDict([('a', nn.ReLU())]))" in text and "self.net = nn.Sequential(layers)" in text


def test_long_lines_are_broken_after_commas() -> None:
    layer = "nn.Dense(size * 1000, size * 1000, weight_init=Normal(0.02), bias_init=Normal(0.002))"
    text = ported(f"self.layer = {layer}\nself.act = nn.ReLU()").text
    assert """        self.layer = initialized(nn.Linear(size * 1000, size * 1000),
                                 weight=lambda weight: nn.init.normal_(weight, std=0.02),
                                 bias=lambda bias: nn.init.normal_(bias, std=0.002))
        self.act = nn.ReLU()
""" in text
    assert all(len(line) <= 120 for line in text.splitlines())


def test_long_lines_of_comprehensions_are_not_broken_in_their_variables() -> None:
    line = f"for n, p in [(n, p) for n, p in {'x' * 90}.named_parameters() if p.requires_grad]:"
    assert wrap_long_lines(line + "\n    pass", set()) == line + "\n    pass"
    call = f"f({'x' * 60}, g(a, b), {'y' * 60})"
    assert wrap_long_lines(call, set()) == f"f({'x' * 60}, g(a, b),\n  {'y' * 60})"
    assert wrap_long_lines(call, {call}) == call


def test_methods_of_cells_that_torch_does_not_need() -> None:
    text = ported("self.a = nn.Dense(4, 4)\nself.a.recompute()\nself.a.add_flags(defer_inline=True)", "return self.a(x)").text
    assert "        self.a = nn.Linear(4, 4)\n        # recompute: see torch.utils.checkpoint\n" in text
    assert ".recompute()" not in text and "add_flags" not in text


def test_a_primitive_whose_local_argument_has_no_effect() -> None:
    text = ported("self.noise = P.UniformReal(seed=size)", "return x + self.noise(x.shape)").text
    assert "return x + torch.rand(x.shape)" in text


def test_initializers_fill_parameters_in_place() -> None:
    values = ("Normal(0.1), cell.weight.shape, cell.weight.dtype", "'zeros', cell.bias.shape", "'ones', (3,)")
    statements = [f"    cell.{name}.set_data(initializer({value}))" for name, value in zip(("weight", "bias", "bias"), values)]
    text = ported("\n".join(["for _, cell in self.cells_and_names():", *statements])).text
    assert "nn.init.normal_(cell.weight, std=0.1)\n" in text and "nn.init.zeros_(cell.bias)\n" in text
    assert "cell.bias.data.copy_(torch.ones(3))" in text


def test_a_word_in_a_text_is_no_attribute() -> None:
    init = "self.mean = P.ReduceMean()\nself.loss = nn.MSELoss('mean')"
    assert "return torch.mean(x, dim=1)" in ported(init, "return self.mean(x, 1)").text
    assert "self.mean = " in ported(init, "return self.mean(x, 1) if hasattr(self, 'mean') else x").text


def test_attributes_of_the_program_named_as_parameters_of_norms() -> None:
    head = HEAD.replace("class Net", """class Loss(nn.Cell):
    beta = 0.5


def scale():
    loss = Loss()
    return loss.beta


class Net""")
    assert "    return loss.beta\n" in ported(head=head, construct="return x * scale()").text
