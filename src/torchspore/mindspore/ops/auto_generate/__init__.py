"""Generated operators of MindSpore: class forms and functions, with their particular names, of what `mint` and Tensor offer.

`AddExt()(x, y)`, `add_ext(x, y)` and `add_ext_op(x, y)` are `mint.add(x, y)`. Other names are looked up in `mindspore.ops`.
"""
from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base import text as _text
from torchspore.mindspore import mint as _mint
from torchspore.mindspore.common import Tensor
from torchspore.mindspore.ops.declaration import error_boundary as _error_boundary
from torchspore.mindspore.ops.declaration.declare import bridged as _bridged
from torchspore.mindspore.ops.declaration.primitive_classes import build_methods as _build_methods
from torchspore.mindspore.ops.declaration.primitive_classes import primitive_class as _primitive_class
from torchspore.public_names import missing as _missing

T = torch.Tensor

_FORMS: dict[str, str] = {
    "mint": (
        "acos AcosExt acos_ext; acosh AcoshExt acosh_ext; add AddExt add_ext; add AddScalar add_scalar; "
        "addcdiv AddcdivExt addcdiv_ext -; addcmul AddcmulExt addcmul_ext -; addbmm Addbmm addbmm -; addmm Addmm addmm -; "
        "addmv Addmv addmv -; any Any any -; any AnyExt any_ext -; arange Arange arange -; argmax ArgMaxExt argmax_ext; "
        "argmin ArgMinExt argmin_ext; argsort ArgSort argsort argsort_ext; asin AsinExt asin_ext; asinh AsinhExt asinh_ext; "
        "atan2 Atan2Ext atan2_ext; atan AtanExt atan_ext; baddbmm Baddbmm baddbmm; bmm BatchMatMulExt bmm_ext; "
        "batch_norm_elemt BatchNormElemt batch_norm_elemt; "
        "batch_norm_gather_stats_with_counts BatchNormGatherStatsWithCounts batch_norm_gather_stats_with_counts; "
        "batch_norm_stats BatchNormStats batch_norm_stats; bincount BincountExt bincount_ext; "
        "bitwise_and BitwiseAndScalar bitwise_and_scalar -; bitwise_and BitwiseAndTensor bitwise_and_tensor -; "
        "bitwise_not BitwiseNot bitwise_not -; bitwise_or BitwiseOrScalar bitwise_or_scalar -; "
        "bitwise_or BitwiseOrTensor bitwise_or_tensor -; bitwise_xor BitwiseXorScalar bitwise_xor_scalar -; "
        "bitwise_xor BitwiseXorTensor bitwise_xor_tensor -; "
        "broadcast_to BroadcastToView broadcast_to_view; chunk Chunk chunk -; chunk ChunkView chunk_view -; "
        "clamp ClampScalar clamp_scalar; clamp ClampTensor clamp_tensor; clone Clone clone; conv_tbc ConvTbc conv_tbc; "
        "cummin CumminExt cummin_ext; cumsum CumsumExt cumsum_ext; diag DiagExt diag_ext; div DivMod divmod -; div DivMods divmods -; "
        "div Divs divs; dot Dot dot; eq EqScalar eq_scalar; exp2 Exp2 exp2; unsqueeze ExpandDimsView expand_dims_view; "
        "flatten FlattenExt flatten_ext; floor_divide FloorDivScalar floor_div_scalar; fmod FmodScalar fmod_scalar -; "
        "fmod FmodTensor fmod_tensor -; frac Frac frac frac_ext; full_like FullLike full_like -; "
        "greater_equal GreaterEqualScalar greater_equal_scalar -; histc HistcExt histc_ext; index_add IndexAddExt index_add_ext -; "
        "index_select IndexSelect index_select index_select_ext; isneginf IsNegInf isneginf isneginf_ext; kthvalue Kthvalue kthvalue; "
        "less LessScalar less_scalar; linspace LinSpaceExt lin_space_ext -; log10 Log10 log10 log10_ext; log2 Log2 log2 log2_ext; "
        "logaddexp LogAddExp logaddexp logaddexp_ext; logaddexp2 LogAddExp2 logaddexp2; logsumexp LogSumExp logsumexp logsumexp_ext; "
        "matmul MatMulExt matmul_ext; inverse MatrixInverseExt matrix_inverse_ext; max Max max max_; min Min min min_; "
        "mean MeanExt mean_ext; median MedianExt median_ext -; mm Mm mm_ext; mul Muls muls; "
        "mv Mv mv; nansum Nansum nansum -; narrow Narrow narrow; narrow NarrowView narrow_view; nonzero NonZeroExt non_zero_ext -; "
        "norm Norm norm -; npu_gelu NpuGelu npu_gelu; ones_like OnesLikeExt ones_like_ext -; outer Outer outer outer_ext; "
        "pow PowScalarTensor pow_scalar_tensor -; pow PowTensorScalar pow_tensor_scalar -; prod ProdExt prod_ext; "
        "remainder RemainderScalarTensor remainder_scalar_tensor -; remainder RemainderTensorScalar remainder_tensor_scalar -; "
        "remainder RemainderTensorTensor remainder_tensor_tensor -; repeat_interleave RepeatInterleaveInt repeat_interleave_int -; "
        "repeat_interleave RepeatInterleaveTensor repeat_interleave_tensor -; scatter_add ScatterAddExt scatter_add_ext -; "
        "select SelectExtView select_ext_view; where SelectV2 select_v2; sort SortExt sort_ext; split SplitTensor split_tensor -; "
        "split SplitTensorView split_tensor_view -; split SplitWithSize split_with_size -; "
        "split SplitWithSizeView split_with_size_view -; std Std std -; std_mean StdMean std_mean -; sub SubExt sub_ext; "
        "sub SubScalar sub_scalar; sum SumExt sum_ext; t TExt t_ext; take Take take; topk TopkExt topk_ext; trace TraceExt trace_ext; "
        "tril TrilExt tril_ext; triangular_solve TriangularSolve triangular_solve; unbind UnstackExtView unstack_ext_view -; "
        "var Var var -; var_mean VarMean var_mean -; vdot Vdot vdot; xlogy XLogYScalarOther xlogy_scalar_other -; "
        "xlogy XLogYScalarSelf xlogy_scalar_self -; zeros_like ZerosLikeExt zeros_like_ext -; addr_ InplaceAddr inplace_addr; "
        "tile Repeat repeat -"
    ),
    "mint.nn.functional": (
        "adaptive_avg_pool1d AdaptiveAvgPool1D adaptive_avg_pool1d; adaptive_avg_pool2d AdaptiveAvgPool2DExt adaptive_avg_pool2d_ext -; "
        "adaptive_avg_pool3d AdaptiveAvgPool3DExt adaptive_avg_pool3d_ext; avg_pool1d AvgPool1D avg_pool1d avg_pool1d_ext; "
        "avg_pool2d AvgPool2D avg_pool2d -; avg_pool3d AvgPool3DExt avg_pool3d_ext -; fold Col2ImExt col2im_ext fold_ext; "
        "conv1d Conv1DExt conv1d_ext -; conv1d Conv1DPadding conv1d_padding -; conv2d Conv2DExt conv2d_ext -; "
        "conv2d Conv2DPadding conv2d_padding -; conv3d Conv3DExt conv3d_ext -; conv3d Conv3DPadding conv3d_padding -; "
        "conv_transpose2d ConvTranspose2D conv_transpose2d; cosine_embedding_loss CosineEmbeddingLoss cosine_embedding_loss; "
        "embedding Embedding embedding -; gelu GeluExt gelu_ext -; hardtanh Hardtanh hardtanh; unfold Im2ColExt im2col_ext unfold_ext; "
        "kl_div KLDiv kl_div -; l1_loss L1LossExt l1_loss_ext; leaky_relu LeakyReLUExt leaky_relu_ext; "
        "mse_loss MSELossExt mse_loss_ext; max_unpool2d MaxUnpool2DExt max_unpool2d_ext; mish MishExt mish_ext; "
        "pixel_shuffle PixelShuffle pixel_shuffle -; selu SeLUExt selu_ext; silu SiLU silu; softplus SoftplusExt softplus_ext; "
        "threshold Threshold threshold; elu_ InplaceElu inplace_elu; threshold_ InplaceThreshold inplace_threshold; "
        "relu_ InplaceReLU inplace_relu -; hardtanh_ InplaceHardtanh inplace_hardtanh"
    ),
    "mint.linalg": (
        "qr LinalgQr linalg_qr; vector_norm LinalgVectorNorm linalg_vector_norm -"
    ),
    "ops": (
        "gather_nd GatherNdExt gather_nd_ext; masked_fill MaskedFillScalar masked_fill_scalar -; swiglu Swiglu swiglu; fft FFT fft; "
        "fft2 FFT2 fft2 -; fftfreq FFTFreq fftfreq; fftn FFTN fftn; fftshift FFTShift fftshift; hfft HFFT hfft; hfft2 HFFT2 hfft2 -; "
        "hfftn HFFTN hfftn; ifft IFFT ifft; ifft2 IFFT2 ifft2 -; ifftn IFFTN ifftn; ifftshift IFFTShift ifftshift; ihfft IHFFT ihfft; "
        "ihfft2 IHFFT2 ihfft2 -; ihfftn IHFFTN ihfftn; irfft IRFFT irfft; irfft2 IRFFT2 irfft2 -; irfftn IRFFTN irfftn; rfft RFFT rfft; "
        "rfft2 RFFT2 rfft2 -; rfftfreq RFFTFreq rfftfreq; rfftn RFFTN rfftn"
    ),
    "Tensor": (
        "expand_as ExpandAs expand_as; new_full NewFull new_full -; new_ones NewOnes new_ones -; new_zeros NewZeros new_zeros -; "
        "view View view; view_as ViewAs view_as; contiguous Contiguous contiguous; mul_ InplaceMul inplace_mul; "
        "mul_ InplaceMuls inplace_muls; div_ InplaceDiv inplace_div div_tensor_; div_ InplaceDivs inplace_divs div_scalar_; "
        "div_ InplaceDivMod inplace_divmod divmod_tensor_; div_ InplaceDivMods inplace_divmods divmod_scalar_; "
        "clamp_ InplaceClampScalar inplace_clamp_scalar; clamp_ InplaceClampTensor inplace_clamp_tensor; "
        "copy_ InplaceCopy inplace_copy; erfinv_ InplaceErfinv inplace_erfinv -; exp_ InplaceExp inplace_exp -; "
        "floor_ InplaceFloor inplace_floor floor_; floor_divide_ InplaceFloorDivide inplace_floor_divide -; "
        "floor_divide_ InplaceFloorDivides inplace_floor_divides -; fill_ InplaceFillScalar inplace_fill_scalar; "
        "fill_ InplaceFillTensor inplace_fill_tensor; fill_diagonal_ InplaceFillDiagonal inplace_fill_diagonal fill_diagonal_; "
        "log_ InplaceLog inplace_log -; masked_fill_ InplaceMaskedFillScalar inplace_masked_fill_scalar masked_fill_scalar_; "
        "masked_fill_ InplaceMaskedFillTensor inplace_masked_fill_tensor masked_fill_tensor_; "
        "masked_scatter_ InplaceMaskedScatter inplace_masked_scatter -; sigmoid_ InplaceSigmoid inplace_sigmoid; "
        "tanh_ InplaceTanh inplace_tanh tanh_; sign_ InplaceSign inplace_sign; zero_ InplaceZero inplace_zero zero_; "
        "scatter_add_ InplaceScatterAdd inplace_scatter_add; index_add_ InplaceIndexAddExt inplace_index_add -; "
        "index_copy_ InplaceIndexCopy inplace_index_copy -; index_fill_ InplaceIndexFillScalar inplace_index_fill_scalar -; "
        "index_fill_ InplaceIndexFillTensor inplace_index_fill_tensor -; put_ InplacePut inplace_put put_; "
        "index_put_ InplaceIndexPut inplace_index_put index_put_; addmm_ InplaceAddmm inplace_addmm -; "
        "remainder_ InplaceRemainderTensorScalar inplace_remainder_tensor_scalar -; "
        "remainder_ InplaceRemainderTensorTensor inplace_remainder_tensor_tensor -"
    ),
}
"""By namespace: our name, MindSpore's class, its instance name without `_op`, and its function: `-` for none, omitted if equal."""


@_bridged
def group_norm_ext(
    input: T, num_groups: int, weight: T | None = None, bias: T | None = None, eps: float = 1e-5,
) -> tuple[T, T, T]:
    """Return (normalized groups of channels, their means, reciprocals of their deviations) for `input` (N, C, ...)."""
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise ValueError(f"expected channels on axis 1 that {num_groups} groups divide, got shape {tuple(input.shape)}.")
    rows, channels = input.shape[:2]
    return torch.native_group_norm(
        input.contiguous(), weight, bias, rows, channels, input.numel() // max(1, rows * channels), num_groups, eps,
    )


@_bridged
def layer_norm_ext(
    input: T, normalized_shape: Any, weight: T | None = None, bias: T | None = None, eps: float = 1e-5,
) -> tuple[T, T, T]:
    """Return (normalized last axes, their means, reciprocals of their deviations)."""
    return torch.native_layer_norm(input, list(normalized_shape), weight, bias, eps)


@_bridged
def swiglu_grad(grad_output: T, input: T, dim: int = -1) -> T:
    """Return the gradient of `input` for the gradient of the result of `swiglu(input, dim)`."""
    first, second = input.chunk(2, dim)
    if grad_output.shape != first.shape or second.shape != first.shape:
        raise ValueError(f"expected a gradient of one half of the input along axis {dim}, got shapes {tuple(grad_output.shape)} and "
                         f"{tuple(input.shape)}.")
    slope = torch.sigmoid(first)
    return torch.cat([grad_output * second * slope * (1 + first * (1 - slope)), grad_output * first * slope], dim)


def _padding(mode: str) -> Callable[..., Any]:
    def pad(input: Any, padding: Any) -> Any:
        return _mint.nn.functional.pad(input, padding, mode=mode)

    return pad


def _upsampling(mode: str, aligns: bool) -> Callable[..., Any]:
    def upsample(x: Any, output_size: Any = None, scales: Any = None) -> Any:
        return _mint.nn.functional.interpolate(x, output_size, None if scales is None else tuple(scales), mode)

    def upsample_aligned(x: Any, output_size: Any = None, scales: Any = None, align_corners: bool = False) -> Any:
        return _mint.nn.functional.interpolate(x, output_size, None if scales is None else tuple(scales), mode, align_corners)

    return upsample_aligned if aligns else upsample


def max_dim(input: Any, dim: int, keepdim: bool = False) -> Any:
    """Return (largest numbers along an axis, their indexes)."""
    return _mint.max(input, dim, keepdim)


def min_dim(input: Any, dim: int, keepdim: bool = False) -> Any:
    """Return (smallest numbers along an axis, their indexes)."""
    return _mint.min(input, dim, keepdim)


def median_dim(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Return (medians along an axis, their indexes)."""
    return _mint.median(input, dim, keepdim)


def constant_pad_nd(input: Any, padding: Any, value: float = 0.0) -> Any:
    """Pad `input` with `value`; `padding` has the counts, from the last axis on."""
    return _mint.nn.functional.pad(input, padding, "constant", value)


def _of_tensor(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a Tensor method as a function that raises TypeError if its first argument is not a Tensor."""

    @functools.wraps(method)
    def function(input: Any, *arguments: Any, **keywords: Any) -> Any:
        if not isinstance(input, Tensor):
            raise TypeError(_text.message(f"{name}(input={_text.short(input)})", f"a Tensor, got {type(input).__name__}"))
        return method(input, *arguments, **keywords)

    return function


@functools.partial(_of_tensor, name="index")
def _index(input: Any, indices: Any) -> Any:
    """Return input[indices[0], indices[1], ...] for a tuple of index Tensors, one for each of the first axes."""
    return input[tuple(indices)]


@functools.partial(_of_tensor, name="slice_ext")
def _slice_ext(input: Any, dim: int, start: int, end: int, step: int) -> Any:
    """Return each `step`-th element from `start` to before `end` along the axis `dim`."""
    return input[(slice(None),) * (dim % input.ndim) + (slice(start, end, step),)]


@functools.partial(_of_tensor, name="inplace_add_ext")
def inplace_add_ext(input: Any, other: Any, alpha: float = 1) -> Any:
    """Add `other` times `alpha` to `input` in place."""
    return input.add_(other if alpha == 1 else other * alpha)


@functools.partial(_of_tensor, name="inplace_sub_ext")
def inplace_sub_ext(input: Any, other: Any, alpha: float = 1) -> Any:
    """Subtract `other` times `alpha` from `input` in place."""
    return input.sub_(other if alpha == 1 else other * alpha)


@_bridged
def solve_triangular(a: T, b: T, trans: int = 0, lower: bool = False, unit_diagonal: bool = False) -> T:
    """The solution x of a @ x = b for a triangular a (..., N, N) and b (..., N) or (..., N, M); `trans` 1 and 2 transpose a."""
    if isinstance(trans, str):
        raise TypeError(_text.message(f"SolveTriangular(trans={trans!r})", "0, 1 or 2"))
    is_vector = b.dim() == a.dim() - 1
    matrix = a.mH if trans else a
    solution = torch.linalg.solve_triangular(
        matrix, b.unsqueeze(-1) if is_vector else b, upper=lower == bool(trans), unitriangular=unit_diagonal,
    )
    return solution.squeeze(-1) if is_vector else solution


_EXTRA_PRIMITIVES: dict[str, tuple[str, Callable[..., Any]]] = {
    "GroupNorm": ("group_norm", group_norm_ext), "LayerNormExt": ("layer_norm_ext", layer_norm_ext),
    "SwigluGrad": ("swiglu_grad", swiglu_grad), "MaxDim": ("max_dim", max_dim), "MinDim": ("min_dim", min_dim),
    "MedianDim": ("median_dim", median_dim), "ConstantPadND": ("constant_pad_nd", constant_pad_nd),
    "SolveTriangular": ("solve_triangular", solve_triangular), "Index": ("index", _index), "SliceExt": ("slice_ext", _slice_ext),
    "InplaceAddExt": ("inplace_add_ext", inplace_add_ext), "InplaceAddsExt": ("inplace_adds_ext", inplace_add_ext),
    "InplaceSubExt": ("inplace_sub_ext", inplace_sub_ext), "InplaceSubScalar": ("inplace_sub_scalar", inplace_sub_ext),
    **{f"ReflectionPad{n}D": (f"reflection_pad_{n}d", _padding("reflect")) for n in (1, 2, 3)},
    **{f"ReplicationPad{n}D": (f"replication_pad_{n}d", _padding("replicate")) for n in (1, 2, 3)},
    "UpsampleNearest1D": ("upsample_nearest1d", _upsampling("nearest", False)),
    "UpsampleNearest2D": ("upsample_nearest2d", _upsampling("nearest", False)),
    "UpsampleLinear1D": ("upsample_linear1d", _upsampling("linear", True)),
    "UpsampleBilinear2D": ("upsample_bilinear2d", _upsampling("bilinear", True)),
    "UpsampleBicubic2D": ("upsample_bicubic2d", _upsampling("bicubic", True)),
}
"""Class name -> (its instance name without `_op`, the function it computes)."""


def _with_positional_parameters(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with every parameter accepted by position, as primitives accept them."""
    parameters = inspect.signature(function).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    if inspect.Parameter.KEYWORD_ONLY not in kinds or inspect.Parameter.VAR_POSITIONAL in kinds:
        return function
    named = [name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]
    first = len(parameters) - len(named)

    @functools.wraps(function)
    def call_positionally(*arguments: Any, **keywords: Any) -> Any:
        return function(*arguments[:first], **dict(zip(named, arguments[first:], strict=False)), **keywords)

    positional = [parameter.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for parameter in parameters.values()]
    call_positionally.__signature__ = inspect.Signature(positional)  # type: ignore[attr-defined]
    return call_positionally


def _offer(name: str, called: str, function: Callable[..., Any], function_name: str | None) -> None:
    names = vars(sys.modules[__name__])
    primitive_class = _primitive_class(name, function, ())
    _build_methods(primitive_class)                # which then get the boundary
    _error_boundary.around(primitive_class)
    names[name], names[f"{called}_op"] = primitive_class, primitive_class()
    if function_name is not None:
        names[function_name] = _error_boundary.around_function(function, function_name)


for _home, _rows in _FORMS.items():
    _namespace: Any = functools.reduce(getattr, _home.split("."), sys.modules["torchspore.mindspore"])
    for _row in _rows.split(";"):
        _ours, _name, _called, *_function_names = _row.split()
        _function = getattr(_namespace, _ours)
        if _namespace is Tensor:
            _function = _of_tensor(_function, _name)
        _offer(_name, _called, _with_positional_parameters(_function), None if _function_names == ["-"] else [*_function_names, _called][0])
for _name, (_called, _function) in _EXTRA_PRIMITIVES.items():
    _offer(_name, _called, _function, None)

__getattr__ = _missing(__name__)
