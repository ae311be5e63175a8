"""Methods of Tensors; `self` is the Tensor."""
from __future__ import annotations

TABLE = """
.mean(axis=None, keep_dims=False, *, dtype=None) = {self.}.mean(<, dim={axis}><, keepdim={keep_dims}><, dtype={dtype}>)
.sum(axis=None, dtype=None, keep_dims=False) = {self.}.sum(<, dim={axis}><, keepdim={keep_dims}><, dtype={dtype}>)
.prod(axis=None, keep_dims=False, dtype=None) = {self.}.prod(<, dim={axis}><, keepdim={keep_dims}><, dtype={dtype}>)
.max(axis=None, keep_dims=False, *, return_indices=False) = @@extreme
.min(axis=None, keep_dims=False, *, return_indices=False) = @@extreme
.amax(axis=None, keep_dims=False) = {self.}.amax(<, dim={axis}><, keepdim={keep_dims}>)
.amin(axis=None, keep_dims=False) = {self.}.amin(<, dim={axis}><, keepdim={keep_dims}>)
.argmax(axis=None, keep_dims=False) = {self.}.argmax(<, dim={axis}><, keepdim={keep_dims}>)
.argmin(axis=None, keep_dims=False) = {self.}.argmin(<, dim={axis}><, keepdim={keep_dims}>)
.any(axis=None, keep_dims=False) = {self.}.any(<, dim={axis}><, keepdim={keep_dims}>)
.all(axis=None, keep_dims=False) = {self.}.all(<, dim={axis}><, keepdim={keep_dims}>)
.std(axis=None, ddof=0, keep_dims=False) = {self.}.std(<, dim={axis}>, correction={ddof}<, keepdim={keep_dims}>)
.var(axis=None, ddof=0, keep_dims=False) = {self.}.var(<, dim={axis}>, correction={ddof}<, keepdim={keep_dims}>)
.norm(ord=None, axis=None, keep_dims=False) = torch.linalg.norm({self}<, ord={ord}><, dim={axis}><, keepdim={keep_dims}>)
.logsumexp(axis, keep_dims=False) = {self.}.logsumexp(dim={axis}<, keepdim={keep_dims}>)
.cumsum(axis=None, dtype=None) = {self.}.cumsum(dim={axis}<, dtype={dtype}>)
.topk(k, axis=None, largest=True, sorted=True) = {self.}.topk({k}<, dim={axis}><, largest={largest}><, sorted={sorted}>)  # of equal values torch may select others than MindSpore
.astype(dtype, copy=True) ~copy = @@cast
.to(dtype) = {self.}.to({dtype})
.float() = {self.}.float()
.half() = {self.}.half()
.int() = {self.}.int()
.long() = {self.}.long()
.bool() = {self.}.bool()
.view(*shape) = {self.}.reshape({*shape})
.reshape(*shape) = {self.}.reshape({*shape})
.view_as(other) = {self.}.reshape({other.}.shape)
.reshape_as(other) = {self.}.reshape({other.}.shape)
.transpose(*axis) = @@transpose
.permute(*axis) = {self.}.permute({*axis})
.swapaxes(axis0, axis1) = {self.}.transpose({axis0}, {axis1})
.swapdims(dim0, dim1) = {self.}.transpose({dim0}, {dim1})
.t() = {self.}.t()
.expand_dims(axis) = {self.}.unsqueeze({axis})
.unsqueeze(axis) = {self.}.unsqueeze({axis})
.squeeze(axis=None) = {self.}.squeeze(<{axis}>)
.flatten(order='C', *, start_dim=0, end_dim=-1) = {self.}.flatten(<, {start_dim}><, end_dim={end_dim}>)
.flatten(start_dim=0, end_dim=-1) = {self.}.flatten(<, {start_dim}><, {end_dim}>)
.ravel() = {self.}.flatten()
.tile(*axis) = {self.}.tile({*axis})
.repeat(repeats, axis=None) = {self.}.repeat_interleave({repeats}<, dim={axis}>)
.repeat_interleave(repeats, axis=None) = {self.}.repeat_interleave({repeats}<, dim={axis}>)
.broadcast_to(shape) = {self.}.broadcast_to({shape})
.expand(*shape) = {self.}.expand({*shape})
.expand_as(other) = {self.}.expand_as({other})
.roll(shifts, axis=None) = {self.}.roll({shifts}<, dims={axis}>)
.flip(*axis) = {self.}.flip({*axis})
.split(split_size_or_sections, axis=0) = {self.}.split({split_size_or_sections}, dim={axis})
.chunk(chunks, axis=0) = {self.}.chunk({chunks}, dim={axis})
.unbind(axis=0) = {self.}.unbind({axis})
.gather(first, second, batch_dims=0) = @@gather_method
.gather_elements(dim, index) = {self.}.gather({dim}, {index.}.long())
.gather_nd(index) = @gather_nd({self}, {index})
.index_select(axis, index) = {self.}.index_select({axis}, {index})
.clip(min=None, max=None) = {self.}.clamp(<, min={min}><, max={max}>)
.clamp(min=None, max=None) = {self.}.clamp(<, min={min}><, max={max}>)
.masked_fill(mask, value) = {self.}.masked_fill({mask}, {value})
.masked_select(mask) = {self.}.masked_select({mask})
.where(condition, y) = torch.where({condition}, {self}, {y})
.pow(exponent) = {self.}.pow({exponent})
.copy() = {self.}.clone()
.clone() = {self.}.clone()
.clone(prefix, init='same') ~prefix = @cloned_parameters({self}, {init})
.asnumpy() = {self.}.detach().cpu().numpy()
.numpy() = {self.}.detach().cpu().numpy()
.item() = {self.}.item()
.tolist() = {self.}.tolist()
.equal(other) = {self+} == {other+}
.not_equal(other) = {self+} != {other+}
.matmul(y) = {self.}.matmul({y})
.bmm(y) = {self.}.matmul({y})
.value() = {self}
.softmax(axis=-1, dtype=None) = {self.}.softmax(dim={axis}<, dtype={dtype}>)
.new_zeros(shape, dtype=None) = {self.}.new_zeros({shape}<, dtype={dtype}>)
.new_ones(shape, dtype=None) = {self.}.new_ones({shape}<, dtype={dtype}>)
.triu(diagonal=0) = {self.}.triu(<, {diagonal}>)
.tril(diagonal=0) = {self.}.tril(<, {diagonal}>)
.median(*axis) = @@other_in_torch
.nanmedian(*axis) = @@other_in_torch
.unique(*axis) = @@other_in_torch
.aminmax(*axis) = @@other_in_torch
.svd(*axis) = @@other_in_torch
.diag(*axis) = @@other_in_torch
.cholesky_inverse(*axis) = @@other_in_torch
.count_nonzero(axis=()) = {self.}.count_nonzero(<{axis}>)
.floor_divide(y) = @floor_divide({self}, {y})
"""
SAME = """
abs exp log sqrt rsqrt sin cos tanh sigmoid erf floor ceil round sign square neg reciprocal logical_not logical_and logical_or isnan isinf
isfinite add sub mul div log1p expm1 maximum minimum relu
"""

# The torch form of attributes of Tensors; {} is the Tensor.
ATTRIBUTES = {"size": "{}.numel()", "itemsize": "{}.element_size()"}

# Methods of Cells; `self` is the Cell.
CELL_TABLE = """
.trainable_params() = @@parameters_of_cell
.get_parameters() = @@parameters_of_cell
.parameters_and_names() = {self.}.named_parameters()
.cells_and_names() = {self.}.named_modules()
.cells() = {self.}.children()
.to_float(dtype) = @@to_float
.set_data(value, slice_shape=False) = @@set_data
.set_train(mode=True) = @@set_train
.insert_child_to_cell(name, cell) = {self.}.add_module({name}, {cell})
"""
