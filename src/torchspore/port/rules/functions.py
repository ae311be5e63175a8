"""Functions of `ops`, `mnp` and the package itself, and primitives that have the same arguments as their function."""
from __future__ import annotations

_UNARY = """
abs exp log sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh floor ceil sign square sigmoid erf erfc erfinv log1p expm1
isnan isinf isfinite log2 log10 neg reciprocal logical_not round trunc lgamma digamma relu rad2deg deg2rad sinc exp2
"""
_BINARY = {
    "add": "+", "sub": "-", "subtract": "-", "mul": "*", "multiply": "*", "div": "/", "divide": "/", "true_divide": "/", "pow": "**",
    "equal": "==", "not_equal": "!=", "greater": ">", "gt": ">", "greater_equal": ">=", "ge": ">=",
    "less": "<", "lt": "<", "less_equal": "<=", "le": "<=", "eq": "==", "ne": "!=", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "floor_mod": "%", "remainder": "%", "tensor_add": "+", "tensor_sub": "-", "tensor_mul": "*", "tensor_div": "/", "tensor_pow": "**", "pows": "**",
}
_PRIMITIVES = {
    "Add": "+", "TensorAdd": "+", "Sub": "-", "Mul": "*", "Div": "/", "Pow": "**", "Equal": "==",
    "NotEqual": "!=", "Greater": ">", "GreaterEqual": ">=", "Less": "<", "LessEqual": "<=", "FloorMod": "%", "BitwiseAnd": "&",
    "BitwiseOr": "|", "BitwiseXor": "^",
}
_UNARY_PRIMITIVES = {
    "Abs": "abs", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Rsqrt": "rsqrt", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Tanh": "tanh",
    "Sigmoid": "sigmoid", "Floor": "floor", "Ceil": "ceil", "Sign": "sign", "Square": "square", "Erf": "erf", "Log1p": "log1p",
    "Expm1": "expm1", "IsNan": "isnan", "IsInf": "isinf", "IsFinite": "isfinite", "Neg": "neg", "Reciprocal": "reciprocal", "Inv": "reciprocal",
    "LogicalNot": "logical_not", "Round": "round", "ReLU": "relu", "Atan": "atan", "Asin": "asin", "ACos": "acos", "ZerosLike": "zeros_like",
    "OnesLike": "ones_like", "Sinh": "sinh", "Cosh": "cosh", "Erfc": "erfc",
}

TABLE = """
ops.relu6(x) = F.relu6({x})
ops.gelu(x, approximate='none') = F.gelu({x}<, approximate={approximate}>)
ops.silu(x) = F.silu({x})
ops.mish(x) = F.mish({x})
ops.elu(x, alpha=1.0) = F.elu({x}<, alpha={alpha}>)
ops.selu(x) = F.selu({x})
ops.celu(x, alpha=1.0) = F.celu({x}<, alpha={alpha}>)
ops.leaky_relu(x, alpha=0.2) = F.leaky_relu({x}, negative_slope={alpha})
ops.prelu(x, weight) = F.prelu({x}, {weight})
ops.hardswish(x) = F.hardswish({x})
ops.hardsigmoid(x) = F.hardsigmoid({x})
ops.softplus(x, beta=1, threshold=20) = F.softplus({x}<, beta={beta}><, threshold={threshold}>)
ops.softsign(x) = F.softsign({x})
ops.logsigmoid(x) = F.logsigmoid({x})
ops.glu(x, axis=-1) = F.glu({x}, dim={axis})
ops.softmax(x, axis=-1, dtype=None) = F.softmax({x}, dim={axis}<, dtype={dtype}>)
ops.log_softmax(x, axis=-1) = F.log_softmax({x}, dim={axis})
ops.logsumexp(x, axis, keep_dims=False) = torch.logsumexp({x}, dim={axis}<, keepdim={keep_dims}>)
ops.mean(x, axis=None, keep_dims=False) = torch.mean({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.sum(x, axis=None, keep_dims=False, *, dtype=None) = torch.sum({x}<, dim={axis}><, keepdim={keep_dims}><, dtype={dtype}>)
ops.reduce_mean(x, axis=None, keep_dims=False) = torch.mean({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.reduce_sum(x, axis=None, keep_dims=False) = torch.sum({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.reduce_max(x, axis=None, keep_dims=False) = torch.amax({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.reduce_min(x, axis=None, keep_dims=False) = torch.amin({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.prod(x, axis=None, keep_dims=False) = torch.prod({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.amax(x, axis=None, keep_dims=False) = torch.amax({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.amin(x, axis=None, keep_dims=False) = torch.amin({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.std(x, axis=None, ddof=0, keep_dims=False) = torch.std({x}<, dim={axis}>, correction={ddof}<, keepdim={keep_dims}>)
ops.var(x, axis=None, ddof=0, keep_dims=False) = torch.var({x}<, dim={axis}>, correction={ddof}<, keepdim={keep_dims}>)
ops.any(x, axis=None, keep_dims=False) = torch.any({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.all(x, axis=None, keep_dims=False) = torch.all({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.max(x, axis=None, keep_dims=False) = @largest({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.min(x, axis=None, keep_dims=False) = @smallest({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.argmax(x, axis=None, keep_dims=False) = torch.argmax({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.argmin(x, axis=None, keep_dims=False) = torch.argmin({x}<, dim={axis}><, keepdim={keep_dims}>)
ops.norm(x, ord=None, axis=None, keep_dims=False) = @@norm
ops.cumsum(x, axis, dtype=None) = torch.cumsum({x}, dim={axis}<, dtype={dtype}>)
ops.cumprod(x, axis, dtype=None) = torch.cumprod({x}, dim={axis}<, dtype={dtype}>)
ops.topk(x, k, axis=None, largest=True, sorted=True) = torch.topk({x}, {k}<, dim={axis}><, largest={largest}><, sorted={sorted}>)  # of equal values torch may select others than MindSpore
ops.sort(x, axis=-1, descending=False) = torch.sort({x}<, dim={axis}><, descending={descending}>, stable=True)
ops.argsort(x, axis=-1, descending=False) = torch.argsort({x}<, dim={axis}><, descending={descending}>, stable=True)
ops.concat(xs, axis=0) = torch.cat({xs}, dim={axis})
ops.cat(xs, axis=0) = torch.cat({xs}, dim={axis})
ops.stack(xs, axis=0) = torch.stack({xs}, dim={axis})
ops.unstack(x, axis=0) = torch.unbind({x}, dim={axis})
ops.unbind(x, axis=0) = torch.unbind({x}, dim={axis})
ops.split(x, split_size_or_sections, axis=0) = torch.split({x}, {split_size_or_sections}, dim={axis})
ops.chunk(x, chunks, axis=0) = torch.chunk({x}, {chunks}, dim={axis})
ops.tensor_split(x, indices_or_sections, axis=0) = torch.tensor_split({x}, {indices_or_sections}, dim={axis})
ops.reshape(x, shape) = torch.reshape({x}, {shape})
ops.transpose(x, axis) = {x.}.permute({axis})
ops.permute(x, axis) = {x.}.permute({axis})
ops.swapaxes(x, axis0, axis1) = {x.}.transpose({axis0}, {axis1})
ops.swapdims(x, dim0, dim1) = {x.}.transpose({dim0}, {dim1})
ops.movedim(x, source, destination) = torch.movedim({x}, {source}, {destination})
ops.expand_dims(x, axis) = {x.}.unsqueeze({axis})
ops.unsqueeze(x, axis) = {x.}.unsqueeze({axis})
ops.squeeze(x, axis=None) = torch.squeeze({x}<, dim={axis}>)
ops.flatten(x, order='C', *, start_dim=1, end_dim=-1) = torch.flatten({x}, start_dim={start_dim}<, end_dim={end_dim}>)
ops.tile(x, multiples) = torch.tile({x}, {multiples})
ops.tile(x, axis) = torch.tile({x}, {axis})
ops.repeat_interleave(x, repeats, axis=None) = torch.repeat_interleave({x}, {repeats}<, dim={axis}>)
ops.broadcast_to(x, shape) = torch.broadcast_to({x}, {shape})
ops.roll(x, shifts, axis=None) = torch.roll({x}, {shifts}<, dims={axis}>)
ops.flip(x, axis) = torch.flip({x}, {axis})
ops.rot90(x, k, dims) = torch.rot90({x}, {k}, {dims})
ops.diag(x) = @diagonal_tensor({x})
ops.diagonal(x, offset=0, dim1=0, dim2=1) = torch.diagonal({x}<, offset={offset}><, dim1={dim1}><, dim2={dim2}>)
ops.tril(x, diagonal=0) = torch.tril({x}<, diagonal={diagonal}>)
ops.triu(x, diagonal=0) = torch.triu({x}<, diagonal={diagonal}>)
ops.meshgrid(*xs, indexing='xy') = torch.meshgrid({*xs}, indexing={indexing})
ops.matmul(x, y) = torch.matmul({x}, {y})
ops.bmm(x, y) = torch.matmul({x}, {y})
ops.bmm(x, mat2) = torch.matmul({x}, {mat2})
ops.mm(x, y) = torch.mm({x}, {y})
ops.mm(x, mat2) = torch.mm({x}, {mat2})
ops.dot(x, y) = torch.tensordot({x}, {y}, dims=([-1], [-2]))
ops.outer(x, vec2) = torch.outer({x}, {vec2})
ops.einsum(equation, *operands) = torch.einsum({equation}, {*operands})
ops.addmm(x, mat1, mat2, *, beta=1, alpha=1) = torch.addmm({x}, {mat1}, {mat2}<, beta={beta}><, alpha={alpha}>)
ops.baddbmm(x, batch1, batch2, beta=1, alpha=1) = torch.baddbmm({x}, {batch1}, {batch2}<, beta={beta}><, alpha={alpha}>)
ops.cdist(x1, x2, p=2.0) = torch.cdist({x1}, {x2}<, p={p}>)
ops.cosine_similarity(x1, x2, dim=1, eps=1e-08) = F.cosine_similarity({x1}, {x2}<, dim={dim}>)
ops.dense(x, weight, bias=None) = F.linear({x}, {weight}<, {bias}>)
ops.where(condition, x, y) = torch.where({condition}, {x}, {y})
ops.where(condition, input, other) = torch.where({condition}, {input}, {other})
ops.select(condition, x, y) = @select({condition}, {x}, {y})
ops.select(condition, input, other) = @select({condition}, {input}, {other})
ops.masked_fill(x, mask, value) = {x.}.masked_fill({mask}, {value})
ops.masked_select(x, mask) = torch.masked_select({x}, {mask})
ops.logical_and(x, y) = torch.logical_and({x}, {y})
ops.logical_or(x, y) = torch.logical_or({x}, {y})
ops.logical_xor(x, y) = torch.logical_xor({x}, {y})
ops.atan2(x, y) = torch.atan2({x}, {y})
ops.fmod(x, y) = torch.fmod({x}, {y})
ops.lerp(x, end, weight) = torch.lerp({x}, {end}, {weight})
ops.clamp(x, min=None, max=None) = @@clamp
ops.clip(x, min=None, max=None) = @@clamp
ops.clip_by_global_norm(x, clip_norm=1.0, use_norm=None) = @clip_by_global_norm({x}<, {clip_norm}>)
ops.clip_by_norm(x, max_norm, norm_type=2.0, error_if_nonfinite=False) = @clip_by_norm({x}, {max_norm}<, norm_type={norm_type}>)
ops.lp_pool1d(x, norm_type, kernel_size, stride=None, ceil_mode=False) = F.lp_pool1d({x}, {norm_type}, {kernel_size}<, stride={stride}><, ceil_mode={ceil_mode}>)
ops.lp_pool2d(x, norm_type, kernel_size, stride=None, ceil_mode=False) = F.lp_pool2d({x}, {norm_type}, {kernel_size}<, stride={stride}><, ceil_mode={ceil_mode}>)
ops.clip_by_value(x, clip_value_min=None, clip_value_max=None) = @@clamp
get_context(attr_key) = @@setting
context.get_context(attr_key) = @@setting
mnp.full(shape, fill_value, dtype=None) = @@full
mnp.full_like(x, fill_value, dtype=None) = torch.full_like({x}, {fill_value}<, dtype={dtype}>)
mnp.zeros_like(x, dtype=None) = torch.zeros_like({x}<, dtype={dtype}>)
mnp.ones_like(x, dtype=None) = torch.ones_like({x}<, dtype={dtype}>)
mnp.linspace(start, stop, num=50) = torch.linspace({start}, {stop}, {num})
ops.zeros(shape, dtype=None) = torch.zeros({shape}<, dtype={dtype}>)
ops.ones(shape, dtype=None) = torch.ones({shape}<, dtype={dtype}>)
ops.full(shape, fill_value, *, dtype=None) = @@full
ops.fill(type, shape, value) = torch.full({shape}, {value}, dtype={type})
ops.zeros_like(x, *, dtype=None) = torch.zeros_like({x}<, dtype={dtype}>)
ops.ones_like(x, *, dtype=None) = torch.ones_like({x}<, dtype={dtype}>)
ops.full_like(x, fill_value, *, dtype=None) = torch.full_like({x}, {fill_value}<, dtype={dtype}>)
ops.eye(n, m=None, dtype=None) = torch.eye({n}<, {m}><, dtype={dtype}>)
ops.arange(start=0, end=None, step=1, *, dtype=None) = torch.arange({start}<, {end}><, {step}><, dtype={dtype}>)
ops.linspace(start, end, steps) = torch.linspace({start}, {end}, {steps})
ops.range(start, end, step) = torch.arange({start}, {end}, {step})
ops.cast(x, dtype) = {x.}.to({dtype})
ops.shape(x) = {x.}.shape
ops.size(x) = {x.}.numel()
ops.rank(x) = {x.}.ndim
ops.dtype(x) = {x.}.dtype
ops.stop_gradient(x) = {x.}.detach()
ops.depend(x, y) = @after({x}, {y})
ops.deepcopy(x) = {x.}.clone()
ops.identity(x) = {x}
ops.isclose(x1, x2, rtol=1e-05, atol=1e-08, equal_nan=False) = torch.isclose({x1}, {x2}<, rtol={rtol}><, atol={atol}>)
ops.gather_elements(x, dim, index) = torch.gather({x}, {dim}, {index.}.long())
ops.gather_d(x, dim, index) = torch.gather({x}, {dim}, {index.}.long())
ops.gather_nd(x, index) = @gather_nd({x}, {index})
ops.index_select(x, axis, index) = torch.index_select({x}, {axis}, {index})
ops.nonzero(x) = torch.nonzero({x})
ops.cross_entropy(x, target, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0) = F.cross_entropy({x}, @class_numbers({target})<, weight={weight}><, ignore_index={ignore_index}><, reduction={reduction}><, label_smoothing={label_smoothing}>)
ops.nll_loss(x, target, weight=None, ignore_index=-100, reduction='mean') = F.nll_loss({x}, {target.}.long()<, weight={weight}><, ignore_index={ignore_index}><, reduction={reduction}>)
ops.mse_loss(x, target, reduction='mean') = F.mse_loss({x}, {target}<, reduction={reduction}>)
ops.l1_loss(x, target, reduction='mean') = F.l1_loss({x}, {target}<, reduction={reduction}>)
ops.smooth_l1_loss(x, target, beta=1.0, reduction='none') = F.smooth_l1_loss({x}, {target}<, beta={beta}>, reduction={reduction})
ops.huber_loss(x, target, reduction='mean', delta=1.0) = F.huber_loss({x}, {target}<, reduction={reduction}><, delta={delta}>)
ops.kl_div(x, labels, reduction='mean') = @kl_div({x}, {labels}, {reduction})
ops.binary_cross_entropy(x, labels, weight=None, reduction='mean') = F.binary_cross_entropy({x}, {labels}<, weight={weight}><, reduction={reduction}>)
ops.binary_cross_entropy_with_logits(x, label, weight=None, pos_weight=None, reduction='mean') = F.binary_cross_entropy_with_logits({x}, {label}<, weight={weight}><, pos_weight={pos_weight}><, reduction={reduction}>)
ops.dropout(x, p=0.5, training=True) = F.dropout({x}, {p}<, training={training}>)
ops.dropout2d(x, p=0.5, training=True) = F.dropout2d({x}, {p}<, training={training}>)
ops.layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-05) = F.layer_norm({x}, {normalized_shape}<, {weight}><, {bias}><, eps={eps}>)
ops.group_norm(x, num_groups, weight=None, bias=None, eps=1e-05) = F.group_norm({x}, {num_groups}<, {weight}><, {bias}><, eps={eps}>)
ops.adaptive_avg_pool1d(x, output_size) = F.adaptive_avg_pool1d({x}, {output_size})
ops.adaptive_avg_pool2d(x, output_size) = F.adaptive_avg_pool2d({x}, {output_size})
ops.adaptive_max_pool2d(x, output_size, return_indices=False) = F.adaptive_max_pool2d({x}, {output_size}<, return_indices={return_indices}>)
ops.avg_pool2d(x, kernel_size=1, stride=1, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=0) = F.avg_pool2d({x}, {kernel_size}, {stride}, {padding}<, ceil_mode={ceil_mode}><, count_include_pad={count_include_pad}>)
ops.max_pool2d(x, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False) = F.max_pool2d({x}, {kernel_size}<, stride={stride}><, padding={padding}><, dilation={dilation}><, return_indices={return_indices}><, ceil_mode={ceil_mode}>)
ops.interpolate(x, size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None) = @@interpolate
ops.pad(x, padding, mode='constant', value=None) = F.pad({x}, {padding}<, mode={mode}><, value={value}>)
ops.pixel_shuffle(x, upscale_factor) = F.pixel_shuffle({x}, {upscale_factor})
ops.pad(x, paddings) = @pad_axes({x}, {paddings})
ops.unfold(x, kernel_size, dilation=1, padding=0, stride=1) = F.unfold({x}, {kernel_size}<, dilation={dilation}><, padding={padding}><, stride={stride}>)
ops.grid_sample(x, grid, mode='bilinear', padding_mode='zeros', align_corners=False) = F.grid_sample({x}, {grid}<, mode={mode}><, padding_mode={padding_mode}>, align_corners={align_corners})
ops.conv2d(x, weight, bias=None, stride=1, pad_mode='valid', padding=0, dilation=1, groups=1) = @conv2d({x}, {weight}<, {bias}><, stride={stride}><, pad_mode={pad_mode}><, padding={padding}><, dilation={dilation}><, groups={groups}>)
ops.deformable_conv2d(x, weight, offsets, kernel_size, strides, padding, bias=None, dilations=(1, 1, 1, 1), groups=1, deformable_groups=1, modulated=True) = @deformable_conv2d({x}, {weight}, {offsets}, {kernel_size}, {strides}, {padding}<, bias={bias}><, dilations={dilations}><, groups={groups}><, deformable_groups={deformable_groups}>)
ops.unsorted_segment_sum(x, segment_ids, num_segments) = @segment_sum({x}, {segment_ids}, {num_segments})
ops.unsorted_segment_max(x, segment_ids, num_segments) = @segment_max({x}, {segment_ids}, {num_segments})
ops.tensor_scatter_elements(x, index, updates, axis=0, reduction='none') = @scatter_elements({x}, {index}, {updates}, {axis}, {reduction})
ops.scatter_nd_update(x, index, updates) = @assign({x}, @scatter_nd({x}, {index}, {updates}))
ops.scatter_update(x, index, updates) = @assign({x}, @scatter_rows({x}, {index}, {updates}))
ops.scatter_add(x, index, updates) = @assign({x}, @scatter_rows({x}, {index}, {updates}, accumulate=True))
ops.index_add(x, indices, y, axis, use_lock=True, check_index_bound=True) = @assign({x}, {x.}.index_add({axis}, {indices}, {y}))
ops.unique(x) = @unique({x})
ops.addn(xs) = sum({xs})
ops.tensor_dot(x, x2, axes) = torch.tensordot({x}, {x2}, dims={axes})
ops.absolute(x) = torch.abs({x})
ops.tensor_scatter_update(x, index, updates) = @scatter_nd({x}, {index}, {updates})
ops.tensor_scatter_add(x, index, updates) = @scatter_nd({x}, {index}, {updates}, accumulate=True)
ops.assign(variable, value) = @assign({variable}, {value})
ops.assign_add(variable, value) = @assign({variable}, {variable+} + {value+})
ops.assign_sub(variable, value) = @assign({variable}, {variable+} - {value+})
ops.tuple_to_array(x) = @tensor_of_numbers({x})
ops.scalar_to_tensor(x) = torch.tensor({x}, dtype=torch.float32)
ops.scalar_to_tensor(x, dtype) = torch.tensor({x}, dtype={dtype})
ops.scalar_to_array(x) = torch.tensor({x})
ops.is_tensor(x) = torch.is_tensor({x})
ops.standard_normal(shape, seed=None) = torch.randn({shape})
ops.uniform(shape, minval, maxval, seed=None, dtype=mindspore.float32) = @uniform({shape}, {minval}, {maxval}<, {dtype}>)
ops.normal(shape, mean, stddev, seed=None) = {mean+} + torch.randn({shape}) * {stddev+}
ops.randint(low, high, size, seed=None, *, dtype=None) = torch.randint({low}, {high}, {size}<, dtype={dtype}>)
ops.randperm(n, seed=0, offset=0, dtype=mindspore.int64) = torch.randperm({n}<, dtype={dtype}>)
ops.randn(*shape, dtype=None) = torch.randn({*shape}<, dtype={dtype}>)
ops.rand(*shape, dtype=None) = torch.rand({*shape}<, dtype={dtype}>)
ops.randn_like(x, dtype=None) = torch.randn_like({x}<, dtype={dtype}>)
ops.rand_like(x, dtype=None) = torch.rand_like({x}<, dtype={dtype}>)
ops.repeat_elements(x, rep, axis=0) = {x.}.repeat_interleave({rep}, dim={axis})
mnp.array(obj, dtype=None) = @@array_of
mnp.split(x, indices_or_sections, axis=0) = torch.tensor_split({x}, {indices_or_sections}, dim={axis})
mnp.tensordot(a, b, axes=2) = torch.tensordot({a}, {b}, dims={axes})
load_checkpoint(ckpt_file_name) = torch.load({ckpt_file_name}, weights_only=True)  # a file of `torchspore ckpt to-torch`
load_checkpoint(ckpt_file_name, net, strict_load=False) = {net.}.load_state_dict(torch.load({ckpt_file_name}, weights_only=True), strict={strict_load})  # a file of `torchspore ckpt to-torch`
load_param_into_net(net, parameter_dict, strict_load=False) ~strict_load = {net.}.load_state_dict({parameter_dict}, strict=False)
save_checkpoint(save_obj, ckpt_file_name) = torch.save({save_obj.}.state_dict(), {ckpt_file_name})
mnp.maximum(x, y) = @maximum({x}, {y})
mnp.minimum(x, y) = @minimum({x}, {y})
mnp.argmin(x, axis=None) = torch.argmin({x}<, dim={axis}>)
mnp.argmax(x, axis=None) = torch.argmax({x}<, dim={axis}>)
mnp.ones(shape, dtype=None) = torch.ones({shape}<, dtype={dtype}>)
mnp.zeros(shape, dtype=None) = torch.zeros({shape}<, dtype={dtype}>)
mnp.arange(start=0, end=None, step=1, dtype=None) = torch.arange({start}<, {end}><, {step}><, dtype={dtype}>)
mnp.repeat(x, repeats, axis=None) = @repeat_values({x}, {repeats}<, {axis}>)
mnp.power(x, y) = {x+} ** {y+}
mnp.copy(x) = {x.}.clone()
mnp.vstack(xs) = torch.vstack({xs})
mnp.concatenate(xs, axis=0) = torch.cat({xs}, dim={axis})
mnp.stack(xs, axis=0) = torch.stack({xs}, dim={axis})
mnp.transpose(x, axis) = {x.}.permute({axis})
mnp.reshape(x, shape) = torch.reshape({x}, {shape})
mnp.where(condition, x, y) = torch.where({condition}, {x}, {y})
mnp.sum(x, axis=None, dtype=None, keep_dims=False) = torch.sum({x}<, dim={axis}><, keepdim={keep_dims}><, dtype={dtype}>)
mnp.mean(x, axis=None, keep_dims=False) = torch.mean({x}<, dim={axis}><, keepdim={keep_dims}>)
mnp.tile(x, axis) = torch.tile({x}, {axis})
mnp.expand_dims(x, axis) = {x.}.unsqueeze({axis})
init._calculate_fan_in_and_fan_out(shape) = nn.init._calculate_fan_in_and_fan_out(torch.empty({shape}, device='meta'))
init._calculate_correct_fan(shape, mode='fan_in') = nn.init._calculate_correct_fan(torch.empty({shape}, device='meta'), {mode})
init._calculate_gain(nonlinearity, param=None) = nn.init.calculate_gain({nonlinearity}<, {param}>)
Tensor.from_numpy(x) = torch.from_numpy({x})
ops.Zeros()(shape, dtype) = torch.zeros({shape}, dtype={dtype})
ops.Ones()(shape, dtype) = torch.ones({shape}, dtype={dtype})
ops.Fill()(type, shape, value) = torch.full({shape}, {value}, dtype={type})
ops.one_hot(index, depth, on=1, off=0, axis=-1) = @one_hot({index}, {depth}, {on}, {off}<, axis={axis}>)
ops.one_hot(index, depth, on_value=1, off_value=0, axis=-1) = @one_hot({index}, {depth}, {on_value}, {off_value}<, axis={axis}>)
ops.floor_div(x, y) = @floor_divide({x}, {y})
ops.floor_divide(x, y) = @floor_divide({x}, {y})
ops.FloorDiv()(x, y) = @floor_divide({x}, {y})
ops.maximum(x, y) = @maximum({x}, {y})
ops.minimum(x, y) = @minimum({x}, {y})
"""


OF_ONE_TENSOR = frozenset(f"torch.{name}({{x}})" for name in _UNARY.split())
"""Functions that torch computes only for tensors, and mindspore.numpy for numbers too."""


def lines() -> str:
    """Return the rules of this file as a text."""
    texts = [TABLE]
    for name in _UNARY.split():
        texts.append(f"ops.{name}(x) = torch.{name}({{x}})")
        texts.append(f"mnp.{name}(x) = torch.{name}({{x}})")
    for name, sign in _BINARY.items():
        note = "  # MindSpore's tensor_div of two integer Tensors gives integers" if name == "tensor_div" else ""
        texts.append(f"ops.{name}(x, y) = {{x+}} {sign} {{y+}}{note}")
        texts.append(f"mnp.{name}(x, y) = {{x+}} {sign} {{y+}}")
    for name, sign in _PRIMITIVES.items():
        texts.append(f"ops.{name}()(x, y) = {{x+}} {sign} {{y+}}")
    texts.append("ops.RealDiv()(x, y) = {x+} / {y+}  # MindSpore's RealDiv of two integer Tensors gives integers")
    for name, function in _UNARY_PRIMITIVES.items():
        texts.append(f"ops.{name}()(x) = torch.{function}({{x}})")
    return "\n".join(texts)
