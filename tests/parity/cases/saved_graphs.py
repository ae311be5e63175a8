"""What can be compared of saved graphs: parameters and their types, the scopes of operators, stages, headings, modes of files."""
import re
import stat
import tempfile
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from parity.case import case

STAGES = ("bootstrap", "type_inference", "optimize", "validate", "task_emit", "execute")


class Sub(nn.Cell):
    def __init__(self):
        super().__init__()
        self.d = nn.Dense(4, 4)

    def construct(self, x):
        return ops.relu(self.d(x))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.s = Sub()
        self.head = nn.Dense(4, 2)

    def construct(self, x):
        return self.head(self.s(x))


def saved(call, level=1, reserve=True):
    """Calls `call` and gives for each file its mode and text, by name less the running number."""
    with tempfile.TemporaryDirectory() as folder:
        ms.set_context(mode=ms.GRAPH_MODE, save_graphs=level, save_graphs_path=folder, reserve_class_name_in_scope=reserve)
        try:
            call()
        finally:
            ms.set_context(mode=ms.PYNATIVE_MODE, save_graphs=0, reserve_class_name_in_scope=True)
        paths = sorted(Path(folder).glob("*.ir"))
        return {re.sub(r"_\d{4}\.ir$", "", path.name): (oct(stat.S_IMODE(path.stat().st_mode)), path.read_text()) for path in paths}


def of_stage(files, stage):
    """The text of the stage; where it says that it is the same as another, of that one."""
    text = next(text for name, (_, text) in files.items() if re.fullmatch(rf"\d\d_{stage}", name))
    match = re.search(r"^# same as (.*)_\d{4}\.ir$", text, re.MULTILINE)
    return files[match.group(1)][1] if match else text


def infer():
    Net()(ms.Tensor(np.ones((3, 4), np.float32)))


def train():
    net = Net()
    loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    step = nn.TrainOneStepCell(loss, nn.SGD(net.trainable_params(), 0.1))
    step(ms.Tensor(np.ones((3, 4), np.float32)), ms.Tensor(np.array([0, 1, 1], np.int32)))


def scopes(text):
    """The Cells that operators belong to, those of the forward part and those of the gradient."""
    names = re.findall(r"# Fullname with scope: \((Default/.*|Gradients/.*)\)", text)
    forward = {name.rpartition("/")[0] for name in names if name.startswith("Default/")}
    backward = {re.sub(r"(/Grad_\w+)?/[^/]*$", "", name) for name in names if name.startswith("Gradients/")}
    return sorted(forward - {"Default"}), sorted(backward)


@case()
def stages_and_modes():
    files = saved(infer)
    names = [re.sub(r"^\d\d_", "", name) for name in sorted(files) if name[:2].isdigit()]
    return {
        "stages": [name for name in names if name in STAGES], "modes": sorted({mode for mode, _ in files.values()}),
        "final graph": any(name.startswith("graph_build_") for name in files),
    }


@case()
def parameters():
    text = of_stage(saved(infer), "validate")
    types = r"<((?:Ref\[)?Tensor\[\w+\]\]?), (\([\d, ]*\))"
    results = {name: [kind, shape] for name, kind, shape in re.findall(rf"^%para\d+_([\w.]+): {types}", text, re.MULTILINE)}
    references = sorted(re.findall(r"ref_key=([\w.]+), is_parameter[^>]*>  :  has_default", text))
    return {"parameters": dict(sorted(results.items())), "references": references, "count": re.findall(r"# Total params: (\d+)", text)}


@case()
def jit_config_block():
    text = of_stage(saved(infer), "execute")
    block = re.search(r"^jit config \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL).group(1)
    return {"names": [line.partition(":")[0] for line in block.splitlines()]}


@case(over={"with classes": True, "without": False})
def forward_scopes(reserve):
    return {"scopes": scopes(of_stage(saved(infer, reserve=reserve), "validate"))[0]}


@case()
def scopes_of_a_training_step():
    forward, backward = scopes(of_stage(saved(train), "validate"))
    # Loads of Parameters, which MindSpore has and torchspore has not, lie in the Cell around; the gradient of the inner Dense lies where
    # MindSpore's common subexpressions left it.
    return {
        "forward": [name for name in forward if "optimizer" not in name and not name.endswith("_backbone-Net")],
        "backward": [name for name in backward if not name.endswith("d-Dense") or "head" in name],
    }


@case()
def an_operator():
    text = of_stage(saved(infer), "validate")
    relu = text[text.index("{instance name:"):]
    node = re.search(r"\n  %\d+\(\S+\) = \S*(?:ReLU|relu)\S*\(%\d+\).*\n      : (.*)\n      # Fullname with scope: \((.*)-op\d+\)\n", relu)
    return {"types": node.group(1), "scope": node.group(2)}


@case()
def headings():
    text = of_stage(saved(infer), "validate")
    lines = ["# IR entry: @", "# Total subgraphs: 1", "# Attrs:", "# Total params: ", "# Params:", "Node counting information:",
             "Total number of nodes: ", "Total number of cnodes: ", "subgraph attr:", "subgraph instance: ", "subgraph @", "  Return(%"]
    positions = [text.find("\n" + line) if not text.startswith(line) else 0 for line in lines]
    return {"found": [position >= 0 for position in positions], "in order": positions == sorted(positions)}
