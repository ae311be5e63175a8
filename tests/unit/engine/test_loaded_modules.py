"""Training steps in PyNative mode and at O0 load none of torch's compilers, nor sympy; and torch's modules answer as ever where they are
needed later."""
from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

HEAVY = ("torch._dynamo", "torch._inductor", "torch.onnx", "sympy", "torch.distributed.tensor", "torch.fx.experimental.symbolic_shapes")

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
import builtins, json, sys
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

IN_TORCH = f'''
def ask():
    from {NAME} import guard_or_false, GuardOnDataDependentSymNode
    import sympy
    from torch.utils._sympy.functions import Max
    return guard_or_false, GuardOnDataDependentSymNode, sympy.Basic, Max
def ask_for_more():
    from {NAME} import guard_or_false, ShapeEnv
    return guard_or_false, ShapeEnv
'''
torch_names = {"__name__": "torch._refs", "__builtins__": __builtins__}
exec(IN_TORCH, torch_names)                                   # functions of torch
kernel = torch._disable_dynamo(lambda x: x + 1)
before = builtins.__import__, torch.__getattr__

with static_symbols.static_symbols():
    light = answers(static_symbols._ANSWERS)
    objects = torch_names["ask"]()
    is_kernel_run = kernel(1) == 2
    is_light = not [name for name in (NAME, "sympy", "torch._dynamo", "torch._inductor") if name in sys.modules]
    import sympy.core.numbers
    is_one = sympy.core.numbers.Integer(1) == sympy.Integer(1) and sys.modules["sympy"] is sympy and torch_names["ask"]()[2] is sympy.Basic
    _, ShapeEnv = torch_names["ask_for_more"]()
    real = sys.modules[NAME]
offered = [name for name in QUESTIONS if hasattr(real, name)]
print(json.dumps([
    is_light and is_kernel_run, is_one, sorted(set(QUESTIONS) - set(offered)),
    {name: light[name] for name in offered} == answers({name: getattr(real, name) for name in offered}),
    objects[0] is static_symbols._ANSWERS["guard_or_false"] and torch_names["ask"]()[0] is real.guard_or_false, ShapeEnv is real.ShapeEnv,
    torch.fx.experimental.symbolic_shapes is real, (builtins.__import__, torch.__getattr__) == before,
    hasattr(kernel.__wrapped__, "__dynamo_disable"),
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
    assert others == [True, True, True, True, True, False]


IN_A_PROGRAM = """
import importlib, json, sys, threading
import numpy as np
import torchspore
torchspore.install()
import mindspore as ms
from mindspore import Tensor

seen = []

@ms.jit
def step(x):
    import sympy
    from torch import _dynamo
    from torch.fx.experimental import symbolic_shapes
    import torch.fx.experimental.symbolic_shapes as same
    from sympy import Basic
    importlib.reload(sympy.core.cache)
    seen.append((sympy is sys.modules["sympy"], _dynamo is sys.modules["torch._dynamo"], symbolic_shapes is same, Basic is sympy.Basic,
                 same is sys.modules["torch.fx.experimental.symbolic_shapes"], type(_dynamo).__name__, type(sympy).__name__))
    try:
        import sympy.absent
    except ImportError:
        return x * 2
    return x

result = step(Tensor(np.ones(2, np.float32))).asnumpy().tolist()
print(json.dumps([result, seen[0]]))
"""

ABSENT = """
import json, sys
import numpy as np
import torchspore
torchspore.install()
import mindspore as ms
from mindspore import Tensor

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "sympy":
            raise ModuleNotFoundError("No module named 'sympy'", name="sympy")

sys.meta_path.insert(0, Absent())

@ms.jit
def step(x):
    try:
        import sympy
    except ImportError:
        return x * 2 + x.mean()
    return x

print(json.dumps([step(Tensor(np.ones(2, np.float32))).asnumpy().tolist(), "sympy" in sys.modules]))
"""


def test_imports_of_a_program_in_a_trace_are_ordinary_imports() -> None:
    result, seen = run(IN_A_PROGRAM)
    assert result == [2, 2]
    assert seen == [True, True, True, True, True, "module", "module"]


def test_an_import_in_a_trace_fails_where_the_package_is_absent() -> None:
    assert run(ABSENT) == [[3, 3], False]


THREADS = """
import builtins, json, sys, threading
import torch
from torchspore.engine.torch_internals import static_symbols

names = {"__name__": "torch._refs", "__builtins__": __builtins__}
exec("def ask():\\n    import sympy\\n    return sympy", names)
objects = []
with static_symbols.static_symbols():
    objects.append(names["ask"]() is sys.modules.get("sympy"))
    thread = threading.Thread(target=lambda: objects.append(names["ask"]() is sys.modules["sympy"]))
    thread.start()
    thread.join()
print(json.dumps(objects))
"""


def test_another_thread_receives_the_real_modules() -> None:
    assert run(THREADS) == [False, True]


INTERRUPTED = """
import builtins, json, linecache, sys
import torch
from torchspore.engine.torch_internals import static_symbols

FUNCTIONS = {"static_symbols", "_begin", "_end", "install", "uninstall", "__init__"}

def interrupted(number):
    # Whether an exception in place of the line with this number ends a block. Python runs no handler of a signal at `try:`.
    seen = [0]
    def in_function(frame, event, argument):
        if event == "line" and linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() not in ("try:", "finally:"):
            seen[0] += 1
            if seen[0] == number:
                sys.settrace(None)
                raise KeyboardInterrupt
        return in_function
    file = static_symbols.__file__
    sys.settrace(lambda frame, *_: in_function if frame.f_code.co_name in FUNCTIONS and frame.f_code.co_filename == file else None)
    try:
        with static_symbols.static_symbols():
            pass
        return False
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)

def state():
    return builtins.__import__, torch.__getattr__, dict(static_symbols._blocks), list(static_symbols._hooks)

number, before, wrong = 1, state(), []
while interrupted(number):
    if state() != before:
        wrong.append((number, str(state())))
    number += 1
print(json.dumps([number, wrong]))
"""


def test_an_interrupt_where_a_block_begins_or_ends_leaves_no_hook() -> None:
    number, wrong = run(INTERRUPTED)
    assert number > 15
    assert not wrong
