"""The smallest integer divided by -1 wraps in every road, as in MindSpore 2.10; the processor would end the process there."""
from __future__ import annotations

from pathlib import Path

import pytest
from support import processes

PROGRAM = """
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore import numpy as mnp

PLACES = Tensor(np.arange(45)[:, None])
ROADS = {
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "//-1": lambda a, b: a // -1, "%-1": lambda a, b: a % -1,
    "floor_divide": ops.floor_divide, "floor_div": ops.floor_div, "FloorDiv": lambda a, b: ops.FloorDiv()(a, b),
    "trunc": lambda a, b: ops.div(a, b, rounding_mode="trunc"), "floor": lambda a, b: ops.div(a, b, rounding_mode="floor"),
    "trunc-1": lambda a, b: ops.div(a, -1, rounding_mode="trunc"), "m.trunc": lambda a, b: a.div(b, rounding_mode="trunc"),
    "m.floor_divide": lambda a, b: a.floor_divide(b), "remainder": ops.remainder, "floor_mod": ops.floor_mod,
    "FloorMod": lambda a, b: ops.FloorMod()(a, b), "fmod": ops.fmod, "fmod-1": lambda a, b: ops.fmod(a, -1),
    "Mod": lambda a, b: ops.Mod()(a, b), "m.fmod": lambda a, b: a.fmod(b), "m.remainder": lambda a, b: a.remainder(b),
    "trunc.op": ops.truncate_div, "trunc.primitive": lambda a, b: ops.TruncateDiv()(a, b), "fmod.trunc_op": ops.truncate_mod,
    "trunc.scatter": lambda a, b: ops.tensor_scatter_div(a, PLACES, b), "mnp.mod": mnp.mod, "mnp.fmod": mnp.fmod,
    "mnp.remainder": mnp.remainder, "mnp.divide": mnp.floor_divide, "mnp.divmod": lambda a, b: mnp.divmod(a, b)[0],
    "m.fl_": lambda a, b: a.copy().floor_divide_(b), "m.remainder_": lambda a, b: a.copy().remainder_(b),
    "r//": lambda a, b: -128 // b, "0d": lambda a, b: ops.div(a, b[0], rounding_mode="trunc"),
}


class All(nn.Cell):
    def construct(self, a, b):
        return tuple(road(a, b) for road in ROADS.values())


for dtype in ("int8", "int16", "int32", "int64"):
    low = np.iinfo(dtype).min
    values = np.array([low, 7, low, -7, 6] * 9, dtype)
    divisors = np.array([-1, -1, -1, 2, -4] * 9, dtype)
    for road, out in zip(ROADS, All()(Tensor(values), Tensor(divisors))):
        left = np.full_like(values, -128) if road == "r//" else values
        by = np.full_like(divisors, -1) if road.endswith(("-1", "0d")) else divisors
        with np.errstate(all="ignore"):
            if ("trunc" in road and "fmod" not in road) or road == "0d":
                want = np.where(by == -1, -left, np.trunc(left / np.where(by == -1, 1, by).astype(float)).astype(dtype))
                want = np.where(by == -1, (0 - left).astype(dtype), want)
            elif "fmod" in road.lower() or road == "Mod":
                want = np.fmod(left, by)
            elif ("mod" in road.lower() and "div" not in road) or "%" in road or "remainder" in road:
                want = np.mod(left, by)
            else:
                want = np.where(by == -1, (0 - left).astype(dtype), np.floor_divide(left, np.where(by == -1, 1, by)))
        rows = slice(0, None) if "trunc" not in road else [0, 1, 2]     # float64 holds no int64
        assert np.array_equal(out.asnumpy()[rows], want[rows]) and str(out.asnumpy().dtype) == dtype, (dtype, road, out, want)
print("whole")
"""


@pytest.mark.parametrize(("mode", "level"), [(1, "O0"), (0, "O0"), pytest.param(0, "O1", marks=pytest.mark.slow)])
def test_the_smallest_integer_by_minus_one_wraps(mode: int, level: str, tmp_path: Path) -> None:
    setting = f"import mindspore\nmindspore.set_context(mode={mode}, jit_config={{'jit_level': '{level}'}})\n"
    program = tmp_path / "program.py"
    program.write_text(setting + PROGRAM)
    ended = processes.torchspore("run", program, cwd=tmp_path, timeout=300)
    assert (ended.code, ended.out.split()) == (0, ["whole"]), ended.err[-3000:]
