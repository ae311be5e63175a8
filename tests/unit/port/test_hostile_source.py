"""Sources that a careless rewriter would port to something else: each is compared with the original, or refused."""
from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from torchspore.mindspore import nn
from torchspore.port import complete_port
from torchspore.port.analysis.source import PortError, Source, read
from torchspore.port.rewriting import torch_file
from torchspore.port.verification import comparison, example_inputs

HEAD = """import numpy as np
import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer
from mindspore.ops import operations as P


"""
NET = "class Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n"


def net(init: str, construct: str) -> str:
    """Return the class Net with these statements."""
    lines = [f"        {line}" for line in init.splitlines()] + ["", "    def construct(self, x):"]
    return NET + "\n".join([*lines, *(f"        {line}" for line in construct.splitlines())]) + "\n"


BASE = """class Base(nn.Cell):
    def __init__(self):
        super().__init__()
        self.act = P.ReLU()

    def construct(self, x):
        return self.act(x)


"""
SAME = {
    "an argument of several lines": net("pass", "y = ops.identity(x\n+ x * 2)\nreturn y"),
    "+= over two lines": net("pass", "y = x * 1\ny += \\\n  x\ny -= (  # a comment\n    x - 1)\nreturn y"),
    "+= of lists": net("pass", "parts = []\nsame = parts\nparts += [x]\nparts += ops.split(x, 2, 1)\nreturn same"),
    "an axis order of two": net(
        "pass", "axes = (0, 1)\nreturn x.transpose(*axes), x.transpose(0, 1), x.transpose((0, 1))"),
    "a primitive in a block of its own": net(
        "if True:  # yes\n    self.mean = P.ReduceMean()\nself.k = 1", "return self.mean(x, 1) * self.k"),
    "a primitive behind a colon": net("if True: self.mean = P.ReduceMean()\nself.k = 2", "return self.mean(x, 1) * self.k"),
    "a primitive between semicolons": net(
        "self.k = 1; self.mean = P.ReduceMean(); self.j = 2", "return self.mean(x, 1) * self.j"),
    "hasattr of a primitive": net("self.mean = P.ReduceMean()", "return self.mean(x) if hasattr(self, 'mean') else -x"),
    "primitives of a loop": net(
        "self.sums = []\nfor keep in (True, False):\n    self.sums.append(P.ReduceSum(keep_dims=keep))\n"
        "self.joins = [P.Concat(axis=axis) for axis in (0, 1)]",
        "return self.sums[0](x, 1), self.sums[1](x, 1), self.joins[0]((x, x)), self.joins[1]((x, x))"),
    "a primitive of the class": "class Net(nn.Cell):\n    mean = P.ReduceMean(keep_dims=True)\n\n    def construct(self, x):\n"
                                "        return self.mean(x, 1)\n",
    "a subclass with another primitive": BASE + "class Net(Base):\n    def __init__(self):\n        super().__init__()\n"
                                                "        self.act = P.Tanh()\n",
    "a subclass that hands the primitive on": BASE + "class Net(Base):\n    def construct(self, x):\n        f = self.act\n"
                                                     "        return f(x) + super().construct(x)\n",
    "functions that are handed on": net("pass", "join = ops.concat\nreturn list(map(ops.softmax, (x, x))), join((x, x))"),
    "a function named as an import":
        "from mindspore.ops import *\n\n\ndef relu(x):\n    return x * 5\n\n\n" + net("pass", "return relu(x)"),
    "a class named as an import": "from mindspore.nn import *\n\n\nclass ReLU(nn.Cell):\n    def construct(self, x):\n"
                                  "        return x * 3\n\n\n" + net("self.act = ReLU()", "return self.act(x)"),
    "a class named as a helper": "class CrossEntropyLoss(nn.Cell):\n    def __init__(self):\n        super().__init__()\n"
        "        self.loss = nn.CrossEntropyLoss()\n\n    def construct(self, x):\n"
        "        return self.loss(x, x.argmax(1).astype(ms.int32))\n\n\n" + net("self.loss = CrossEntropyLoss()", "return self.loss(x)"),
    "a variable named as a helper": net("pass", "maximum = 3\nreturn ops.maximum(x, 0) * maximum"),
    "variables named as modules of MindSpore": net("self.layers = nn.CellList([nn.Dense(4, 4), nn.ReLU()])",
                                                   "for ops in self.layers:\n    x = ops(x)\nreturn (lambda ops: ops * 2)(x)"),
    "a mixin with construct": "class Twice:\n    def construct(self, x):\n        return super().construct(x) * 2\n\n\n"
                              "class Base(nn.Cell):\n    def construct(self, x):\n        return ops.relu(x)\n\n\n"
                              "class Net(Twice, Base):\n    pass\n",
    "a list for SequentialCell": "class Net(nn.SequentialCell):\n    def __init__(self):\n        layers = [nn.Dense(4, 4), nn.ReLU()]\n"
                                 "        super().__init__(layers)\n",
    "gamma of another object": net(
        "self.options = type('Options', (), {'gamma': 2.0, 'weight': 100.0})()", "return x * self.options.gamma"),
    "gamma of another Cell": "class Scale(nn.Cell):\n    def __init__(self):\n        super().__init__()\n"
        "        self.gamma = Parameter(Tensor(np.ones(4) * 3, ms.float32))\n\n    def construct(self, x):\n        return x * self.gamma\n"
        "\n\n" + net("self.scale = Scale()", "return self.scale(x) + self.scale.gamma"),
    "parameters of layers": net(
        "self.dense = nn.Dense(4, 4)\nfor _, cell in self.cells_and_names():\n    if isinstance(cell, nn.Dense) and cell.has_bias:\n"
        "        cell.bias.set_data(initializer('ones', cell.bias.shape))\nself.norm = nn.LayerNorm((4,))",
        "return self.norm(self.dense(x)) * self.norm.gamma"),
    "a method for masks": "class Net(nn.Cell):\n    def construct(self, x):\n        return self._make_mask(x) * x\n\n"
                          "    def _make_mask(self, x):\n        return x.std(axis=0) + x.max(axis=0)\n",
    "a primitive of dropout in evaluation": net(
        "self.drop = P.Dropout(keep_prob=0.5)", "y, mask = self.drop(x * 0 + 1)\nreturn (y < 2).any()"),
    "affine=False": net("self.norm = nn.BatchNorm1d(4, affine=False, gamma_init=2)\nself.group = nn.GroupNorm(2, 4, affine=False)",
                        "return self.group(self.norm(x))"),
    "classes that derive from layers": "class Twice(nn.Dense):\n    def construct(self, x):\n        return super().construct(x) * 2\n\n\n"
        "class Norm(nn.LayerNorm):\n    def construct(self, x):\n        y, _, _ = self.layer_norm(x, self.gamma, self.beta)\n"
        "        return y + self.beta\n\n\n"
        "class Standard(nn.Conv2d):\n    def __init__(self, size):\n        super().__init__(1, size, 3, pad_mode='same', stride=2)\n\n"
        "    def construct(self, x):\n        w = self.weight\n        return self.conv2d(x, w - w.mean())\n\n\n"
        + net("self.dense = Twice(4, 4, activation='relu')\nself.norm = Norm((4,), epsilon=1e-3)\nself.conv = Standard(2)",
              "return self.conv(self.norm(self.dense(x)).expand_dims(0).expand_dims(0))"),
    "layers that are handed on": "class Block(nn.Cell):\n    def __init__(self, norm=nn.BatchNorm1d, act=nn.GELU, **rest):\n"
        "        super().__init__()\n        self.norm, self.act, self.drop = norm(4, momentum=0.7), act(), nn.Dropout(**rest)\n\n"
        "    def construct(self, x):\n        return self.act(self.norm(x))\n\n\n"
        + net("self.a, self.b = Block(p=0.1), Block(nn.LayerNorm if False else nn.BatchNorm1d, nn.ReLU, keep_prob=0.9)",
              "return self.a(x) + self.b(x)"),
    "a way of padding with a bias": net(
        "mode = 'same' if ms.float32 else 'pad'\nself.conv = nn.Conv2d(1, 2, 3, pad_mode=mode, has_bias=True, bias_init='ones')\n"
        "self.up = nn.Conv2dTranspose(2, 1, 3, pad_mode=mode, has_bias=True, bias_init='ones')",
        "return self.up(self.conv(x.expand_dims(0).expand_dims(0)))"),
    "blocks of pixels": net(
        "self.up, self.down = P.DepthToSpace(2), P.SpaceToDepth(2)\nself.loss = nn.RMSELoss()",
        "y = ops.stack([x[:2] * i for i in range(1, 9)]).reshape(1, 8, 2, 4)\nz = self.up(y)\n"
        "return z, self.down(z * z), self.loss(x, x * x)"),
    "a name that MindSpore lacks": net("self.is_old = False", "return ops.concatcat((x, x)) if self.is_old else x * 2"),
    "Tensors for Parameters": net(
        "self.p = Parameter(Tensor(np.ones(4), ms.float32))\nself.dense = nn.Dense(4, 4)\n"
        "self.p = initializer('zeros', self.p.shape, ms.float32)\nself.dense.weight = initializer('ones', (4, 4))",
        "return self.dense(x) + self.p"),
    "an f-string": net("self.mean = P.ReduceMean()", "y = f'{self.mean(x, 1).shape[0]}'\nreturn x * int(y)"),
    "a symmetric border": net("self.pad = nn.Pad(((1, 0), (2, 1)), 'SYMMETRIC')\nself.mirror = nn.Pad(((1, 2), (0, 3)), 'REFLECT')",
                              "return self.pad(x), self.mirror(x)"),
    "zeros behind a transposed convolution": net("self.up = nn.Conv2dTranspose(1, 2, 3, 2, 'pad', 1, 1, has_bias=True)",
                                                 "return self.up(x.expand_dims(0).expand_dims(0))"),
    "a divisor": net("self.pool = nn.AvgPool2d(2, 2, 'pad', 1, divisor_override=3)", "return self.pool(x.expand_dims(0))"),
    "a diagonal of two axes": net("pass", "return ops.diag(x)"),
    "a divergence from values below 0": net("self.loss = nn.KLDivLoss()", "return self.loss(x, x * 0.5) + ops.kl_div(x, x - 1, 'sum')"),
    "ties": net(
        "pass", "y = ops.round(x)\nreturn y.max(axis=1), y.min(0)[0], ops.clip_by_value(y, Tensor(-1.0), Tensor(1.0)), y.max(1, True)"),
    "integers": net("pass", "n = ops.cast(x * 5, ms.int32)\nreturn P.DivNoNan()(n, n - 1), n // 2, n % 3, n / 2"),
    "Chinese names and comments": "# 网络\n\n\nclass Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n"
        "        self.全连接 = nn.Dense(4, 4)  # 全连接层\n        self.名 = '中文：，。'\n\n    def construct(self, 输入):\n"
        "        输出 = ops.reduce_mean(self.全连接(输入), 1); 和 = ops.reduce_sum(输出)  # 均值、和\n"
        "        return 输出 * 和 + ops.reduce_max(输入, 1) * len(self.名)  # 结果\n",
    "tabs": "class Net(nn.Cell):\n\tdef __init__(self):\n\t\tsuper().__init__()\n\t\tself.d = nn.Dense(4, 4)\n\n\tdef construct(self, x):\n"
            "\t\tx += self.d(x)\n\t\tif x.ndim == 2:\n\t\t\tx = ops.relu(x)\n\t\treturn x\n",
    "names of all imports": "from math import *\nfrom mindspore.nn import *\n\n\n" + net("self.d, self.k = Dense(4, 4), sqrt(16.0)",
                                                                                       "return self.d(x) * self.k"),
    "a constructor of the base": NET.replace("super().__init__()", "nn.Cell.__init__(self)") + "        self.d = nn.Dense(4, 4)\n\n"
                                 "    def construct(self, x):\n        return self.d(x)\n",
    "a mixin with arguments": "class Named:\n    def __init__(self, *args, name='n', **rest):\n        super().__init__(*args, **rest)\n"
        "        self.title = name\n\n\nclass Net(Named, nn.Cell):\n    def __init__(self):\n        super().__init__(name='abc')\n\n"
        "    def construct(self, x):\n        return ops.relu(x) * len(self.title)\n",
    "a base that changes its subclasses": "class Base(nn.Cell):\n    def __init_subclass__(cls, k=1, **rest):\n"
        "        super().__init_subclass__(**rest)\n        cls.k = k\n\n\nclass Net(Base, k=4):\n    def construct(self, x):\n"
        "        return x * self.k\n",
    "a decorator that changes the class": "def add(cls):\n    cls.k = 5\n    return cls\n\n\n@add\n"
                                          + net("pass", "return ops.relu(x) * self.k"),
    "a construct that is a lambda": "class Net(nn.Cell): construct = lambda self, x: ops.relu(x)\n",
    "a construct that is a function": "def f(self, x):\n    return ops.relu(x) * 2\n\n\nclass Net(nn.Cell):\n    construct = f\n",
    "a construct that is replaced": net("self.k = 3", "return x") + "\n\ndef new(self, x):\n    return ops.relu(x) * self.k\n\n\n"
                                                                  "Net.construct = new\n",
    "a class that is defined twice": net("pass", "return x * 2") + "\n\n" + net("pass", "return ops.relu(x)"),
    "an overridden call": net("pass", "return ops.relu(x)") + "\n    def __call__(self, x):\n        return super().__call__(x) + 1\n",
    "values that are not Tensors": net("pass", "return x * 2, 3, 'text', None, [x, {'a': x.shape}], (True, x.dtype)"),
    "options of the context": "from mindspore import context\n\n\n" + net(
        "self.k = 2 if context.get_context('device_target') == 'Ascend' else 3\n"
        "self.j = 5 if ms.get_context('mode') == ms.GRAPH_MODE else 7",
        "return x * self.k * self.j"),
    "a limit that is handed on": net(
        "self.clip = ops.clip_by_value", "return self.clip(x, Tensor(-0.5), 0.5) + self.clip(x, clip_value_max=1)"),
    "names of mindspore.numpy": "import mindspore.numpy as mnp\n\n\n" + net(
        "self.kind = mnp.float32",
        "return x.astype(self.kind) * mnp.linspace(0, 1, 4) + mnp.linspace(0, 1, num=4)"),
    "squeeze": net("pass", "return x.expand_dims(0).squeeze(), x.expand_dims(0).squeeze(0), x.astype(np.int32)"),
}


@pytest.mark.parametrize("case", SAME)
def test_computes_the_same(case: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.py"
    path.write_text(HEAD + SAME[case], encoding="utf-8")
    verdict, = complete_port.port_file(str(path), ["Net"], "", ["3,4"]).verdicts
    assert verdict.is_equal, verdict


def test_a_verification_leaves_the_classes_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "hostile.py"
    path.write_text(HEAD + SAME["+= of lists"], encoding="utf-8")
    layers = [value for value in vars(nn).values() if isinstance(value, type) and issubclass(value, nn.Cell)]
    classes = {base for layer in layers for base in layer.__mro__}
    before = {cls: dict(vars(cls)) for cls in classes}
    complete_port.port_file(str(path), ["Net"], "", ["3,4"])
    changed = [f"{cls.__name__}.{name}" for cls, names in before.items() for name in names if vars(cls).get(name) is not names[name]]
    assert changed == []


REFUSED = {
    "derives from nn.PReLU": "class Twice(nn.PReLU):\n    def construct(self, x):\n        return super().construct(x) * 2\n\n\n"
                             + net("self.act = Twice(4)", "return self.act(x)"),
    "defines forward": "class Net(nn.Cell):\n    def construct(self, x):\n        return self.forward(x) + 1\n\n"
                       "    def forward(self, x):\n        return x * 2\n",
    "an f-string that calls": net("self.mean = P.ReduceMean()", "print(f'{nn.GELU()(x)}')\nreturn x"),
    "a variable is named F": net("pass", "B, F = x.shape\nreturn ops.softmax(x) * F"),
    "a variable is named torch": net("pass", "torch = x * 2\nreturn ops.exp(torch)"),
    "the output would have it twice": net("self.p = Parameter(Tensor(1.0))", "ops.assign_add(self.pick(), x.sum())\nreturn x"),
    "no rule for torch": net("pass", "return x.median()"),
    "no rule for data_format": net("self.pool = P.MaxPool(2, 2, data_format='NHWC')", "return self.pool(x)"),
    "defines train, which torch.nn.Module uses": "class Mixin:\n    def train(self, x):\n        return x * 2\n\n\n"
        "class Net(nn.Cell, Mixin):\n    def construct(self, x):\n        return self.train(x)\n",
    "assigns self.modules, which torch.nn.Module uses": net("self.modules = 3", "return x * self.modules"),
    "assigns self.forward, which": net("self.forward = nn.Dense(4, 4)", "return self.forward(x)"),
    "nn has no rule": net("self.d = getattr(nn, 'Conv2d')(3, 4, 3)", "return self.d(x)"),
    "the class Inner inside of another definition": net(
        "class Inner(nn.Cell):\n    def construct(self, x):\n        return ops.relu(x)\nself.inner = Inner()", "return self.inner(x)"),
    "a class that type() creates": "Inner = type('Inner', (nn.Cell,), {'construct': lambda self, x: x})\n\n\n"
                                   + net("self.inner = Inner()", "return self.inner(x)"),
    "has a metaclass": "class Meta(type(nn.Cell)):\n    pass\n\n\nclass Net(nn.Cell, metaclass=Meta):\n    pass\n",
    "the option 'device_id'": net("self.k = ms.get_context('device_id')", "return x * self.k"),
    "max_norm": net("self.table = nn.EmbeddingLookup(7, 3, max_norm=0.1)", "return self.table(x)"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_is_refused(message: str) -> None:
    problem, *_ = torch_file.port(Source(HEAD + REFUSED[message]), ["Net"]).problems
    assert message in problem.text


@pytest.mark.parametrize("text, message", [
    ("make = lambda: 3\n", "got a lambda"), ("if True:\n    class make(nn.Cell):\n        pass\n", "got a definition in a block"),
    ("make = 3\n", "got a value")])
def test_targets_that_are_no_class(text: str, message: str) -> None:
    with pytest.raises(PortError, match=message):
        torch_file.port(Source(HEAD + text), ["make"])


def test_a_port_that_cannot_be_imported(tmp_path: Path) -> None:
    text = "SIZE = eval('ms').float32 and 4\n\n\n" + net("self.k = SIZE", "return x * self.k")
    (tmp_path / "late.py").write_text(HEAD + text)
    verdict, = complete_port.port_file(str(tmp_path / "late.py"), ["Net"], "", ["3,4"]).verdicts
    assert verdict.reason == "the port can't be imported: NameError: name 'ms' is not defined"


def test_files_that_are_no_source(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    for name in ("pipe.py", "folder.py"):
        with pytest.raises(PortError, match="expected a plain file"):
            read(str(tmp_path / name))


def test_a_file_of_many_functions_that_cannot_be_ported() -> None:
    functions = "".join(f"\n\ndef make_{number}():\n    return Net(), ops.fold({number})\n" for number in range(60))
    text = HEAD + net("pass", "return ops.relu(x)") + functions + "\n\ndef make():\n    return Net()\n"
    started = time.process_time()
    ported = torch_file.port(Source(text))
    assert not ported.problems and ported.functions == ["make"] and time.process_time() - started < 10


def test_old_line_ends(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_bytes((HEAD + net("pass", "return ops.add(x, 1)")).replace("\n", "\r").encode())
    assert "return x + 1\n" in torch_file.port(read(str(tmp_path / "old.py"))).text


def test_what_the_comparison_sees(tmp_path: Path) -> None:
    path = tmp_path / "compared.py"
    path.write_text(HEAD + net("self.norm = nn.BatchNorm1d(4, momentum=0.7)", "return self.norm(x) * 1e-6 + ops.sum(x, 1, True) * 0"))
    text = torch_file.port(read(str(path))).text
    recording = example_inputs.recording(str(path), "Net", "", ["3,4"])
    changes = {"momentum=0.3": "momentum=0.7", "* 1e-6": "* 1.1e-6", "keepdim=True": "keepdim=True).squeeze(1", "* 0": "* 1e-7"}
    assert comparison.verify(text, ["Net"], recording)[0].is_equal
    for before, after in changes.items():                    # statistics in training, small values, shapes
        assert before in text
        verdict, = comparison.verify(text.replace(before, after), ["Net"], recording)
        assert not verdict.is_equal, before


def test_classes_among_the_arguments_are_ported_too(tmp_path: Path) -> None:
    blocks = """class Block(nn.Cell):
    def __init__(self, size):
        super().__init__()
        self.dense = nn.Dense(size, size)
        self.init_parameters_data()

    def construct(self, x):
        return self.dense(x)


"""
    init = "self.block = block(4)\nself.cast = nn.Dense(4, 2).to_float(dtype)\nself.print = P.Print()"
    text = net(init, "return self.cast(self.block(x))")
    (tmp_path / "blocks.py").write_text(HEAD + blocks + text.replace("(self)", "(self, block, dtype)", 1))
    verdict, = complete_port.port_file(str(tmp_path / "blocks.py"), ["Net"], "Block, ms.float32", ["3,4"]).verdicts
    assert verdict.is_equal, verdict


def test_truncated_normals_have_the_same_bounds() -> None:
    init = "self.a = nn.Dense(8, 4, TruncatedNormal(0.5, 1.0, -1.0, 3.0))\nself.b = nn.Dense(8, 4, 'truncatednormal')"
    head = HEAD.replace("import initializer", "import TruncatedNormal, initializer")
    text = torch_file.port(Source(head + net(init, "return self.a(x)"))).text
    assert "nn.init.trunc_normal_(weight, mean=1.0, std=0.5, a=(-1.0), b=3.0)" in text and "nn.init.trunc_normal_(weight, std=0.01)" in text


def test_a_configuration_with_dtypes_and_names(tmp_path: Path) -> None:
    options = "class Options:\n    def __init__(self):\n        self.act, self.dtype = 'relu', ms.float32\n\n\n"
    text = net("self.dense = nn.Dense(4, 2, activation=options.act).to_float(options.dtype)", "return self.dense(x).astype(ms.float32)")
    (tmp_path / "options.py").write_text(HEAD + options + text.replace("(self)", "(self, options)", 1))
    verdict, = complete_port.port_file(str(tmp_path / "options.py"), ["Net"], "Options()", ["3,4"]).verdicts
    assert verdict.is_equal, verdict


def test_the_training_mode_is_noted_once() -> None:
    init = "self.norm = nn.BatchNorm1d(4)\nself.drop = nn.Dropout(p=0.1)"
    text = torch_file.port(Source(HEAD + net(init, "return self.drop(self.norm(x))"))).text
    assert text.count("begins in training mode") == 1
