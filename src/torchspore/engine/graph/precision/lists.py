"""Which operators a policy casts, by the names of ATen's operators (all overloads of a name are alike)."""
from __future__ import annotations

CUBE = frozenset({
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "linear", "convolution", "convolution_backward",
})
"""Products and convolutions, and their gradients: what a matrix unit computes."""

ALLOWED = CUBE | {"relu", "threshold_backward", "prelu", "_prelu_kernel", "_prelu_kernel_backward"}
"""What the mixed policies compute in 16 bits: products gain most, and relu only picks."""

DENIED = frozenset({
    "acos", "asin", "cosh", "sinh", "tan", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "pow", "reciprocal", "rsqrt", "erfinv",
    "sum", "prod", "mean", "cumsum", "cumprod", "logcumsumexp", "logsumexp", "var", "std", "var_mean", "norm", "linalg_vector_norm",
    "cdist", "_cdist_forward", "_cdist_backward", "renorm",
    "_softmax", "_softmax_backward_data", "_log_softmax", "_log_softmax_backward_data",
    "native_layer_norm", "native_layer_norm_backward", "native_group_norm", "native_group_norm_backward", "native_batch_norm",
    "native_batch_norm_backward", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
    "nll_loss_forward", "nll_loss_backward", "nll_loss2d_forward", "nll_loss2d_backward", "mse_loss", "mse_loss_backward",
    "smooth_l1_loss", "smooth_l1_loss_backward", "huber_loss", "huber_loss_backward", "binary_cross_entropy",
    "binary_cross_entropy_backward", "binary_cross_entropy_with_logits", "soft_margin_loss", "soft_margin_loss_backward",
    "multilabel_margin_loss_forward", "multilabel_margin_loss_backward",
    "embedding_dense_backward", "index_add", "index_put", "scatter_add",
})
"""What the mixed policies compute in float32: sums of many numbers, functions that leave float16's range, losses, normalization."""

STATEFUL = frozenset({
    "native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
    "_native_batch_norm_legit_functional", "as_strided",
})
"""What no policy changes: batch norms, whose statistics are state, and views that count in elements of the memory behind them."""
