"""Training steps in PyNative mode and at O0 load none of torch's compilers, nor sympy; and torch's modules answer as ever where they are
needed later."""
from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

HEAVY = ("torch._dynamo", "torch._inductor", "torch.onnx", "sympy")

TRAINING = f"""
import json, sys
import numpy as np
import torchspore
torchspore.install()
import mindspore as ms
from mindspore import Tensor, nn, ops

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.drop = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Dropout(p=0.1)
        self.dense, self.layer_norm = nn.Dense(4 * 36, 10), nn.LayerNorm((10,))

    def construct(self, x):
        x = ops.max_pool2d(ops.relu(self.norm(self.conv(x))), 1)
        return ops.gelu(self.layer_norm(self.dense(self.drop(x.reshape(x.shape[0], -1)))))

def loaded():
    return [name for name in {HEAVY} if name in sys.modules]

x, y = Tensor(np.ones((2, 1, 6, 6), np.float32)), Tensor(np.zeros(2, np.int32))
seen = {{}}
for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
    ms.set_context(mode=mode, jit_config={{"jit_level": "O0"}})
    net, loss = Net(), nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    optimizer(ms.value_and_grad(lambda x, y: loss(net(x), y), None, net.trainable_params())(x, y)[1])
    nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer, sens=1024.0)(x, y)
    ms.grad(lambda x: ops.sin(x) * x)(x)

    def branch(x):
        if x.sum() > 0:
            return (x * x * x).sum()
        return x.sum()

    second = lambda x: ms.grad(lambda x: ms.grad(branch)(x).sum())(x)
    assert np.allclose((second if mode else ms.jit(second))(Tensor([1.0, 2.0])).asnumpy(), [6, 12])
    seen[mode] = loaded()
print(json.dumps(seen))
"""

ANSWERS = """
import json, sys, types
import torch
from torchspore.engine.torch_internals import static_symbols

NAME = static_symbols.SYMBOLIC_SHAPES
QUESTIONS = {
    "guard_or_false": [(True,), (False,)], "guard_or_true": [(True,), (False,)], "guard_bool": [(True,)], "guard_int": [(3,)],
    "guard_scalar": [(3,), (2.5,), (True,)], "expect_true": [(True,), (False, 1)], "statically_known_true": [(True,), (False,)],
    "statically_known_false": [(True,), (False,)], "guard_size_oblivious": [(False,)], "guarding_hint_or_throw": [(3,), (True,)],
    "has_guarding_hint": [(3,)], "optimization_hint": [(3,), (3, 4)], "has_hint": [(3,)], "is_symbolic": [(3,), (2.5,)],
    "is_nested_int": [(3,)], "sym_eq": [((1, 2), [1, 2]), ((1, 2), (1, 3)), ((1,), (1, 2)), (3, 3), (3, 4), ((), ()), ([1], [1])],
    "sym_and": [(True, True), (True, False), (False,)], "sym_or": [(False, True), (False, False), (True,)], "size_hint": [(3,)],
    "has_free_symbols": [(3,), (torch.ones(2, 3),), ((1, 2.5),)], "has_free_unbacked_symbols": [(3,), (torch.ones(2, 3),)],
    "free_unbacked_symbols": [(3,), (torch.ones(2, 3),)], "compute_unbacked_bindings": [(None, torch.ones(2))],
    "_iterate_exprs": [(torch.ones(2),)], "_iterate_nodes": [(3,)],
}
assert set(QUESTIONS) == set(static_symbols._ANSWERS)

def answers(functions):
    return {
        name: [value if isinstance(value := function(*question), (bool, int, float, type(None))) else list(value)
               for question in QUESTIONS[name]]
        for name, function in functions.items()
    }

with static_symbols.static_kernels():
    light = answers(static_symbols._ANSWERS)
    importing = compile(f"from {NAME} import guard_or_false as keeps, GuardOnDataDependentSymNode", torch.__file__, "exec")
    variables = {}
    exec(importing, variables)                                # as a module of torch does
    torch._dynamo.config._custom_ops_profile
    is_light = not [name for name in ("sympy.core", "torch._dynamo", "torch._inductor") if name in sys.modules]
    import sympy.core.numbers                                 # loads the package: its parts must not be loaded twice
    is_one = sympy.core.numbers.Integer(1) == sympy.Integer(1) and isinstance(sympy.Integer(2), sympy.core.numbers.Integer)
    is_one = is_one and sys.modules["sympy.core.numbers"] is sympy.core.numbers and sympy.core.numbers.__spec__.loader is not None
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    real = sys.modules[NAME]
offered = [name for name in QUESTIONS if hasattr(real, name)]
print(json.dumps([
    is_light, is_one, sorted(set(QUESTIONS) - set(offered)),
    {name: light[name] for name in offered} == answers({name: getattr(real, name) for name in offered}),
    variables["keeps"] is real.guard_or_false and variables["GuardOnDataDependentSymNode"] is real.GuardOnDataDependentSymNode,
    torch.fx.experimental.symbolic_shapes is real, type(sys.modules["sympy"]) is types.ModuleType, "_dynamo" in vars(torch),
    [str(function) for function in static_symbols._hidden_functions() if hasattr(function, "__dynamo_disable")],
]))
"""


def run(program: str) -> Any:
    """Return what the program prints as JSON."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_training_loads_no_compiler() -> None:
    assert run(TRAINING) == {"0": [], "1": []}


def test_light_answers_are_those_of_torch() -> None:
    is_light, is_one, absent, *others = run(ANSWERS)
    assert is_light and is_one
    assert set(absent) <= {"has_hint", "size_hint", "optimization_hint", "has_guarding_hint", "guarding_hint_or_throw"}  # by version
    assert others == [True, True, True, True, False, []]


AFTER_A_BLOCK = """
import copy, importlib.util, json, sys
from unittest import mock
import torch
from torchspore.engine.torch_internals import static_symbols

NAME = static_symbols.SYMBOLIC_SHAPES
importing = compile(f"from {NAME} import GuardOnDataDependentSymNode, guard_or_false as keeps", torch.__file__, "exec")
variables = {}
with static_symbols.static_kernels():
    exec(importing, variables)                                # as a module of torch does
    import sympy
    is_light = "sympy.core" not in sys.modules
    has_file = importlib.util.find_spec("sympy.core").origin is not None
    has_names = "Symbol" in dir(sympy)
    sympy.added = 5
    is_patched = []
    with mock.patch.object(sympy, "Symbol", 7):
        is_patched.append(sys.modules["sympy"].Symbol == 7)
    is_patched.append(sys.modules["sympy"].Symbol != 7)
    del sympy.added
    copied = copy.copy(sympy)
is_unloaded = NAME not in sys.modules
import torch.fx.experimental.symbolic_shapes as real         # as a program does
print(json.dumps([
    is_light, has_file, has_names, *is_patched, hasattr(sys.modules["sympy"], "added"), copied is sys.modules["sympy"], is_unloaded,
    variables["GuardOnDataDependentSymNode"] is real.GuardOnDataDependentSymNode, variables["keeps"] is real.guard_or_false,
    static_symbols._imported_objects, [str(finder) for finder in sys.meta_path if "torchspore" in type(finder).__module__],
    "exec_module" in vars(real.__loader__),
]))
"""


def test_substitutes_act_as_their_modules_and_leave_no_objects() -> None:
    assert run(AFTER_A_BLOCK) == [True, True, True, True, True, False, True, True, True, True, [], [], False]


INTERRUPTED = """
import json, sys
import torch
from torchspore.engine.torch_internals import static_symbols

FUNCTIONS = {"static_symbols", "static_kernels", "_install", "_install_for_kernels"}

def interrupted(number):
    # Whether an exception in place of the line with this number ends a block.
    seen = [0]
    def in_function(frame, event, argument):
        if event == "line":
            seen[0] += 1
            if seen[0] == number:
                sys.settrace(None)
                raise KeyboardInterrupt
        return in_function
    sys.settrace(lambda frame, *_: in_function if frame.f_code.co_name in FUNCTIONS and begins[0] else None)
    try:
        begins[0] = True
        with static_symbols.static_kernels():
            begins[0] = False
            sys.settrace(None)
            return False
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)

def state():
    marked = [function for function in static_symbols._hidden_functions() if hasattr(function, "__dynamo_disable")]
    with static_symbols.static_kernels():
        in_block = [name for name in static_symbols._OBJECTS if name in sys.modules], "_dynamo" in vars(torch)
    return [name for name in static_symbols._OBJECTS if name in sys.modules], "_dynamo" in vars(torch), len(marked), in_block

begins, number, before, wrong = [True], 1, state(), []
while interrupted(number):
    if state() != before:
        wrong.append((number, state()))
    number += 1
print(json.dumps([number, wrong]))
"""


def test_an_interrupt_where_a_block_begins_leaves_no_substitute() -> None:
    number, wrong = run(INTERRUPTED)
    assert number > 20
    assert not wrong
