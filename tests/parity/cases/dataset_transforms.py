"""Transforms of any data: results at the edges, and what they refuse."""

from __future__ import annotations

import mindspore as ms
import mindspore.dataset.transforms as transforms
import numpy as np
from parity.case import case, raised

ROW = np.array([1, 2, 3], np.int32)

RESULTS = {
    "padend text": lambda: transforms.PadEnd([3], "-")(np.array(["a", "bcd"])),
    "padend text none": lambda: transforms.PadEnd([3])(np.array(["a", "bcd"])),
    "padend float": lambda: transforms.PadEnd([5], 1.5)(ROW),
    "padend bytes": lambda: transforms.PadEnd([3], b"x")(np.array([b"a"])),
    "padend bool": lambda: transforms.PadEnd([5], True)(np.array([True, False])),
    "slice out": lambda: transforms.Slice(slice(5, 9))(ROW),
    "slice list neg": lambda: transforms.Slice([-1, 0])(ROW),
    "slice int neg": lambda: transforms.Slice(-1)(ROW),
    "slice none": lambda: transforms.Slice(None)(ROW),
    "slice text": lambda: transforms.Slice([0])(np.array(["ab", "c"])),
    "slice true": lambda: transforms.Slice(True)(ROW),
    "slice ell 2": lambda: transforms.Slice(..., [0])(np.ones((2, 2))),
    "slice nothing": lambda: transforms.Slice()(ROW),
    "concat text": lambda: transforms.Concatenate(0, np.array(["x"]), np.array(["yy"]))(np.array(["a"])),
    "concat 2": lambda: transforms.Concatenate(0)(ROW, ROW),
    "concat -1": lambda: transforms.Concatenate(-1)(ROW, ROW),
    "fill str": lambda: transforms.Fill("b")(np.array(["a", "bc"])),
    "fill bool": lambda: transforms.Fill(True)(ROW),
    "fill float int": lambda: transforms.Fill(300)(np.zeros(2, np.uint8)),
    "fill neg uint": lambda: transforms.Fill(-1)(np.zeros(2, np.uint8)),
    "fill bytes": lambda: transforms.Fill(b"x")(np.array([b"a"])),
    "unique 2d": lambda: transforms.Unique()(np.array([[3, 1], [3, 2]], np.int16)),
    "cast neg uint": lambda: transforms.TypeCast(ms.uint16)(np.array([-1, 70000], np.int32)),
    "cast bool f": lambda: transforms.TypeCast(ms.bool_)(np.array([.5, 0])),
    "cast f16": lambda: transforms.TypeCast(np.float16)(np.array([1e6, 1.1])),
    "cast str": lambda: transforms.TypeCast("float32")(ROW),
    "cast int type": lambda: transforms.TypeCast(int)(ROW),
    "mask ne": lambda: transforms.Mask(transforms.Relational.NE, 2)(ROW),
    "mask dtype": lambda: transforms.Mask(transforms.Relational.LT, 2, ms.uint8)(ROW),
    "mask text": lambda: transforms.Mask(transforms.Relational.EQ, "a")(np.array(["a", "b"])),
    "mask f": lambda: transforms.Mask(transforms.Relational.LE, 2.5)(ROW),
    "mask 2d": lambda: transforms.Mask(transforms.Relational.GT, 1)(np.eye(2)*3),
    "onehot row one": lambda: transforms.OneHot(3)(np.array([1])),
    "onehot i8": lambda: transforms.OneHot(300)(np.array(200, np.uint8)),
    "onehot smooth 1": lambda: transforms.OneHot(3, 1.0)(np.array(1)),
    "dup": lambda: transforms.Duplicate()(np.array(["a"])),
    "order one": lambda: transforms.RandomOrder([lambda a: a+1])(ROW),
    "apply never": lambda: transforms.RandomApply([lambda a: a+1], 0.0)(ROW),
    "compose nested": lambda: transforms.Compose([lambda a: a+1, transforms.Compose([lambda a: a*2])])(ROW),
    "compose two": lambda: transforms.Compose([lambda a, b: (a+b, b)])(ROW, ROW),
}


@case(over=list(RESULTS), rtol=1e-6)
def result(name):
    output = RESULTS[name]()
    return {str(index): np.asarray(array) for index, array in enumerate(output if isinstance(output, tuple) else (output,))}


REFUSED = {
    "padend text num": lambda: transforms.PadEnd([3], 3)(np.array(["a"])),
    "padend num text": lambda: transforms.PadEnd([3], "a")(ROW),
    "padend ndim": lambda: transforms.PadEnd([3])(np.ones((2, 2))),
    "padend 0": lambda: transforms.PadEnd([0]),
    "padend tuple": lambda: transforms.PadEnd((3, )),
    "slice list out": lambda: transforms.Slice([5])(ROW),
    "slice int out": lambda: transforms.Slice(9)(ROW),
    "slice str": lambda: transforms.Slice("a"),
    "slice many": lambda: transforms.Slice([0], [0])(ROW),
    "slice float list": lambda: transforms.Slice([1.5]),
    "slice tuple": lambda: transforms.Slice((0, 1))(ROW),
    "concat dtype": lambda: transforms.Concatenate(0, np.array([1.0]))(ROW),
    "concat axis": lambda: transforms.Concatenate(1)(ROW),
    "concat 2d": lambda: transforms.Concatenate(0)(np.ones((2, 2)), np.ones((1, 2))),
    "concat list": lambda: transforms.Concatenate(0, [1])(ROW),
    "concat 0d": lambda: transforms.Concatenate(0, np.array(1, np.int32))(ROW),
    "concat pre 2d": lambda: transforms.Concatenate(0, np.ones((1, 1), np.int32)),
    "fill num text": lambda: transforms.Fill("b")(ROW),
    "fill text num": lambda: transforms.Fill(3)(np.array(["a"])),
    "fill list": lambda: transforms.Fill([1]),
    "unique text": lambda: transforms.Unique()(np.array(["a"])),
    "unique two": lambda: transforms.Unique()(ROW, ROW),
    "cast text": lambda: transforms.TypeCast(ms.int32)(np.array(["1"])),
    "mask op": lambda: transforms.Mask("EQ", 2),
    "mask text num": lambda: transforms.Mask(transforms.Relational.EQ, "a")(ROW),
    "mask num text": lambda: transforms.Mask(transforms.Relational.EQ, 3)(np.array(["a"])),
    "onehot text": lambda: transforms.OneHot(3)(np.array("a")),
    "onehot rate": lambda: transforms.OneHot(3, 2.0),
    "onehot bool": lambda: transforms.OneHot(3)(np.array(True)),
    "dup two": lambda: transforms.Duplicate()(ROW, ROW),
    "order none": lambda: transforms.RandomOrder([]),
    "order 3": lambda: transforms.RandomOrder(3),
    "choice str": lambda: transforms.RandomChoice("a"),
    "apply prob": lambda: transforms.RandomApply([lambda a: a], 2),
    "compose str": lambda: transforms.Compose(["a"]),
}


@case(over=list(REFUSED))
def refused(name):
    return {"error": raised(REFUSED[name])}
