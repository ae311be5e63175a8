"""What bad calls say: shapes, parts and places."""
from __future__ import annotations

import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.ops import operations as P
from support.error_messages import Bad, check


def z(*shape, d=np.float32):
    """Zeros."""
    return Tensor(np.zeros(shape, d))


BAD = {
    "reshape": Bad(
        lambda: z(2, 3).reshape(4, 2), ValueError,
        "reshape(input: Float32[2, 3], shape: [4, 2])",
        "expected a shape of 6 elements, got (4, 2).",
        "write -1 for the one length that follows from the others.",
    ),
    "reshape1": Bad(
        lambda: z(2, 3).reshape(-1, 4), ValueError,
        "reshape(input: Float32[2, 3], shape: [-1, 4])",
        "expected a shape of 6 elements, got (-1, 4).",
    ),
    "reshape2": Bad(
        lambda: z(2, 3).reshape(-1, -1), ValueError,
        "reshape(input: Float32[2, 3], shape: [-1, -1])",
        "expected -1 for one length at most.",
    ),
    "transpose": Bad(
        lambda: z(2, 3).transpose(0, 1, 2), ValueError,
        "transpose(input: Float32[2, 3], dims: [0, 1, 2])",
        "expected an order of all 2 axes, got 3.",
    ),
    "transpose_dup": Bad(
        lambda: z(2, 3).transpose((0, 0)), ValueError,
        "transpose(input: Float32[2, 3], dims: [0, 0])",
        "expected each axis once.",
    ),
    "expand": Bad(
        lambda: z(2, 3).broadcast_to((2, 4)), ValueError,
        "broadcast_to(input: Float32[2, 3], shape: (2, 4))",
        "expected a shape that it broadcasts to: on axis 1 it has 3, not 4 and not 1.",
    ),
    "expand2": Bad(
        lambda: z(2, 3).broadcast_to((3,)), ValueError,
        "broadcast_to(input: Float32[2, 3], shape: (3,))",
        "expected at least 2 axes in the shape, got 1.",
    ),
    "no_axis": Bad(
        lambda: ops.fft(z()), ValueError, "fft(input: Float32[])", "expected at least one axis, got a Tensor without axes.",
    ),
    "too_few_axes": Bad(
        lambda: ops.pixel_shuffle(z(2), 1), ValueError, "pixel_shuffle(input: Float32[2], upscale_factor: 1)",
        "expected at least 3 axes.",
    ),
    "no_ints": Bad(
        lambda: ops.roll(z(2), (z(2), z(2))), TypeError, "roll(input: Float32[2], shifts: (Float32[2], Float32[2]))",
        "expected a tuple of ints as shifts, got one with a Tensor in it.",
    ),
    "parts": Bad(
        lambda: ops.split(z(3), -1), ValueError, "split(tensor: Float32[3], split_size_or_sections: -1)",
        "expected a length of the parts from 1 on, got -1.",
    ),
    "bins": Bad(
        lambda: ops.bincount(Tensor([-1])), ValueError, "bincount(input: Int64[1])",
        "expected ints from 0 on, along one axis.",
    ),
    "limits": Bad(
        lambda: ops.randint(5, 2, (2,)), ValueError, "randint(low: 5, high: 2, size: (2,))", "expected low below high, got 5 and 2.",
    ),
    "lengths": Bad(
        lambda: ops.randint(0, 2, (-2,)), ValueError, "randint(low: 0, high: 2, size: (-2,))", "expected lengths from 0 on, got -2.",
    ),
    "a_text_is_no_tensor": Bad(
        lambda: ops.where(True, "a", z(1)), TypeError, "where(condition: True, input: 'a', other: Float32[1])",
        "expected a Tensor as input, got str.",
    ),
    "a_switch_is_no_tensor": Bad(
        lambda: ops.var(z(2), -1, 1, z(2)), TypeError, "var(input: Float32[2], axis: -1, ddof: 1, keepdims: Float32[2])",
        "expected a number as keepdims, got Tensor.",
    ),
    "squeeze": Bad(
        lambda: z(2, 3).squeeze(9), ValueError,
        "squeeze(input: Float32[2, 3], axis: 9)",
        "expected an axis from -2 to 1, got 9.",
    ),
    "flatten": Bad(
        lambda: ops.flatten(z(2, 3), start_dim=5), ValueError,
        "flatten(input: Float32[2, 3], start_dim: 5)",
        "expected an axis from -2 to 1, got 5.",
    ),
    "swap": Bad(
        lambda: z(2, 3).swapaxes(0, 5), ValueError,
        "swapaxes(input: Float32[2, 3], axis0: 0, axis1: 5)",
        "expected an axis from -2 to 1, got 5.",
    ),
    "concat": Bad(
        lambda: ops.concat((z(2, 3), z(2, 4))), ValueError,
        "concat(tensors: (Float32[2, 3], Float32[2, 4]))",
        "expected equal shapes except along the joined axis, got (2, 3) and (2, 4).",
    ),
    "concat_rank": Bad(
        lambda: ops.concat((z(2, 3), z(2))), ValueError,
        "concat(tensors: (Float32[2, 3], Float32[2]))",
        "expected equal shapes, got (2, 3) and (2,).",
    ),
    "concat_axis": Bad(
        lambda: ops.concat((z(2, 3), z(2, 3)), 5), ValueError,
        "concat(tensors: (Float32[2, 3], Float32[2, 3]), axis: 5)",
        "expected an axis from -2 to 1, got 5.",
    ),
    "concat_empty": Bad(
        lambda: ops.concat(()), ValueError,
        "concat(tensors: ())",
        "expected at least one Tensor.",
    ),
    "concat_arr": Bad(
        lambda: ops.concat([np.zeros(2)]), TypeError,
        "concat(tensors: [array([0., 0.])])",
        "expected Tensors in tensors, got ndarray.",
        "write Tensor(tensors[0]).",
    ),
    "stack": Bad(
        lambda: ops.stack([z(2), z(3)]), ValueError,
        "stack(tensors: (Float32[2], Float32[3]))",
        "expected equal shapes, got (2,) and (3,).",
    ),
    "split": Bad(
        lambda: P.Split(0, 3)(z(4)), ValueError,
        "Split(input_x: Float32[4], output_num: 3)",
        "expected a number of parts that divides 4, the length of axis 0, got 3.",
    ),
    "split2": Bad(
        lambda: ops.split(z(4), [1, 2]), ValueError,
        "split(tensor: Float32[4], split_size_or_sections: [1, 2])",
        "expected sizes that sum to 4, got 1, 2.",
    ),
    "chunk": Bad(
        lambda: ops.chunk(z(4), 0), ValueError,
        "chunk(input: Float32[4], chunks: 0)",
        "expected a number from 1 on, got 0.",
    ),
    "tile": Bad(
        lambda: ops.tile(z(2), (-1,)), ValueError,
        "tile(input: Float32[2], dims: (-1,))",
        "expected lengths from 0 on, got -2.",
    ),
    "repeat": Bad(
        lambda: z(2).repeat(-1), ValueError,
        "repeat_interleave(input: Float32[2], repeats: -1)",
        "expected one count from 0 on for each element along the axis.",
    ),
    "flip": Bad(
        lambda: ops.flip(z(2), (5,)), ValueError,
        "flip(input: Float32[2], dims: (5,))",
        "expected an axis from -1 to 0, got 5.",
    ),
    "roll": Bad(
        lambda: ops.roll(z(2), 1, 5), ValueError,
        "roll(input: Float32[2], shifts: 1, dims: 5)",
        "expected an axis from -1 to 0, got 5.",
    ),
    "narrow": Bad(
        lambda: ops.narrow(z(4), 0, 2, 5), ValueError,
        "narrow(input: Float32[4], axis: 0, start: 2, length: 5)",
        "expected a part within 4 elements, got 5 from 2 on.",
    ),
    "meshgrid": Bad(
        lambda: ops.meshgrid(z(2), z(2), indexing='ab'), ValueError,
        "meshgrid(inputs[0]: Float32[2], inputs[1]: Float32[2], indexing: 'ab')",
        "expected indexing 'xy' or 'ij'.",
    ),
    "triu": Bad(
        lambda: ops.triu(z(2)), ValueError,
        "triu(input: Float32[2])",
        "expected at least 2 axes, got shape (2,).",
    ),
    "unstack": Bad(
        lambda: ops.unstack(z(2), 5), ValueError,
        "unstack(input_x: Float32[2], axis: 5)",
        "expected an axis from -1 to 0, got 5.",
    ),
    "strided": Bad(
        lambda: ops.strided_slice(z(2), (0, 0), (1, 1), (1, 1)), IndexError,
        "strided_slice(input_x: Float32[2], begin: (0, 0), end: (1, 1), strides: (1, 1))",
        "expected at most 1 indexes, one for each axis.",
    ),
    "slice": Bad(
        lambda: ops.slice(z(2), (0,), (5,)), ValueError,
        "slice(input_x: Float32[2], begin: (0,), size: (5,))",
        "expected a part within 2 elements, got 5 from 0 on.",
    ),
    "rnn": Bad(
        lambda: ops.repeat_interleave(z(2), [1, 2, 3]), ValueError,
        "repeat_interleave(input: Float32[2], repeats: [1, 2, 3])",
        "expected one count from 0 on for each element along the axis.",
    ),
    "idx": Bad(
        lambda: z(2, 3)[5], IndexError,
        "x[5] of shape (2, 3)",
        "index 5 is out of bounds for dimension with size 2, axis 0.",
    ),
    "idx2": Bad(
        lambda: z(2, 3)[0, 0, 0], IndexError,
        "x[0, 0, 0] of shape (2, 3)",
        "expected at most 2 indexes, one for each axis.",
    ),
    "idxs": Bad(
        lambda: z(2)['a'], IndexError,
        "x['a']",
        "expected ints, slices, None, ..., lists, bools or Tensors, got str.",
    ),
    "idxf": Bad(
        lambda: z(2)[1.5], IndexError,
        "x[1.5]",
        "expected ints, slices, None, ..., lists, bools or Tensors, got float.",
    ),
    "mask": Bad(
        lambda: z(2)[Tensor([True, False, True])], ValueError,
        "x[Bool[3]] of shape (2,)",
        "expected a mask of the Tensor's shape (2), got (3).",
    ),
    "idxt": Bad(
        lambda: z(2)[Tensor([5])], IndexError,
        "x[Int64[1]] of shape (2,)",
        "index 5 is out of bounds for dimension with size 2, axis 0.",
    ),
    "set": Bad(
        lambda: z(2, 3).__setitem__(0, z(4)), ValueError,
        "x[0] = Float32[4] of shape (2, 3)",
        "expected a shape that it broadcasts to: on axis 0 it has 4, not 3 and not 1.",
    ),
    "set5": Bad(
        lambda: z(2, 3).__setitem__(5, 1), IndexError,
        "x[5] = 1 of shape (2, 3)",
        "index 5 is out of bounds for dimension with size 2, axis 0.",
    ),
    "sets": Bad(
        lambda: z(2).__setitem__(0, 'a'), TypeError,
        "x[0] = 'a' of shape (2,)",
        "expected a number, a list, an array or a Tensor, got str.",
    ),
    "idxd": Bad(
        lambda: z(2)[{}], IndexError,
        "x[{}]",
        "expected ints, slices, None, ..., lists, bools or Tensors, got dict.",
    ),
    "gather": Bad(
        lambda: ops.gather(z(2, 3), Tensor([5]), 0), IndexError,
        "gather(input_params: Float32[2, 3], input_indices: Int64[1], axis: 0)",
        "an index is beyond the axis.",
        "indexes go from 0 to the length of the axis - 1.",
    ),
    "gather_d": Bad(
        lambda: ops.gather_elements(z(2, 3), 0, Tensor([[5]])), IndexError,
        "gather_elements(input: Float32[2, 3], dim: 0, index: Int64[1, 1])",
        "index 5 is out of bounds for dimension with size 2, axis 0.",
    ),
    "embed": Bad(
        lambda: nn.Embedding(3, 2)(Tensor([7])), IndexError,
        "gather(input_params: Float32[3, 2], input_indices: Int64[1], axis: 0)",
        "an index is beyond the axis.",
        "indexes go from 0 to the length of the axis - 1.",
    ),
    "embed_float": Bad(
        lambda: nn.Embedding(3, 2)(z(2)), TypeError,
        "gather(input_params: Float32[3, 2], input_indices: Float32[2], axis: 0)",
        "expected integers as indexes, got Float32.",
        "write indices.astype(mindspore.int32).",
    ),
    "one_hot": Bad(
        lambda: ops.one_hot(Tensor(np.ones(2, np.uint32)), 3), TypeError,
        "one_hot(indices: UInt32[2], depth: 3)",
        "expected integers as indexes, got UInt32.",
        "write indices.astype(mindspore.int32).",
    ),
    "where3": Bad(
        lambda: ops.where(z(2) > 0, z(3), z(2)), ValueError,
        "where(condition: Bool[2], input: Float32[3], other: Float32[2])",
        "expected shapes that broadcast, got (2,) and (3,) and (2,): on axis 0 they have 2 and 3.",
    ),
    "masked": Bad(
        lambda: ops.masked_select(z(2), Tensor([True, False, True])), ValueError,
        "masked_select(input: Float32[2], mask: Bool[3])",
        "expected shapes that broadcast, got (2,) and (3,): on axis 0 they have 3 and 2.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_message(name: str) -> None:
    check(BAD[name], __file__)
