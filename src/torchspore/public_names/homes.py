"""The table of moved names: where a name or module of MindSpore 1.x and 2.x is defined here. Old path -> home.

Only names that are *not* defined under their own path belong here. If a home lacks the name, the old path is missing too.
"""
from __future__ import annotations

_OPS = ("mindspore.ops",)
_NN = ("mindspore.nn",)
_TRAIN = ("mindspore.train", "mindspore")
_DATASET = ("mindspore.dataset",)
_AUDIO = ("mindspore.dataset.audio", "mindspore.dataset.transforms")
_TEXT = ("mindspore.dataset.text", "mindspore.dataset.transforms")
_VISION = ("mindspore.dataset.vision", "mindspore.dataset.transforms")
_TRANSFORMS = ("mindspore.dataset.transforms", "mindspore.dataset.vision")
_COMMON = ("mindspore.common", "mindspore")
_METRIC_FILES = (
    "accuracy", "auc", "bleu_score", "confusion_matrix", "cosine_similarity", "dice", "error", "evaluation", "fbeta", "hausdorff_distance",
    "loss", "mean_surface_distance", "metric", "occlusion_sensitivity", "perplexity", "precision", "recall", "roc",
    "root_mean_square_surface_distance", "topk",
)
"""Files below nn.metrics until 1.8."""
_DISTRIBUTION = ("mindspore.nn.probability.distribution",)
_BIJECTORS = ("bijector", "exp", "gumbel_cdf", "invert", "power_transform", "scalar_affine", "softplus")
_DISTRIBUTIONS = (
    "bernoulli", "beta", "categorical", "cauchy", "exponential", "gamma", "geometric", "gumbel", "half_normal", "laplace", "log_normal",
    "logistic", "normal", "poisson", "student_t", "uniform",
)
"""Files below nn.probability: one class each."""

MODULES: dict[str, tuple[str, ...]] = {
    "mindspore._c_expression": ("mindspore.common", "mindspore", "mindspore.ops"),
    "mindspore._c_expression.security": ("mindspore.common._security",),
    "mindspore.common": ("mindspore",),
    "mindspore.common._decorator": _COMMON,
    "mindspore.common._register_for_tensor": _COMMON,
    "mindspore.common.api": _COMMON,
    "mindspore.common.dtype": _COMMON,
    "mindspore.common.hook_handle": _COMMON,
    "mindspore.common.jit_config": _COMMON,
    "mindspore.common.mindir_util": ("mindspore.train.export",),
    "mindspore.common.mutable": _COMMON,
    "mindspore.common.parameter": _COMMON,
    "mindspore.common.seed": _COMMON,
    "mindspore.common.sparse_tensor": _COMMON,
    "mindspore.common.tensor": _COMMON,
    "mindspore.communication.management": ("mindspore.communication",),
    "mindspore.dataset.audio.transforms": _AUDIO,
    "mindspore.dataset.audio.utils": _AUDIO,
    "mindspore.dataset.core": ("mindspore.dataset",),
    "mindspore.dataset.engine": _DATASET,
    "mindspore.dataset.text.transforms": _TEXT,
    "mindspore.dataset.text.utils": _TEXT,
    **dict.fromkeys([f"mindspore.dataset.engine.datasets_{kind}" for kind in ("audio", "standard_format", "text", "vision")], _DATASET),
    "mindspore.dataset.transforms.c_transforms": _TRANSFORMS,
    "mindspore.dataset.transforms.py_transforms": _TRANSFORMS,
    "mindspore.dataset.transforms.transforms": _TRANSFORMS,
    "mindspore.dataset.transforms.vision": _VISION,
    "mindspore.dataset.transforms.vision.c_transforms": _VISION,
    "mindspore.dataset.transforms.vision.py_transforms": _VISION,
    "mindspore.dataset.transforms.vision.utils": _VISION,
    "mindspore.dataset.vision.c_transforms": _VISION,
    "mindspore.dataset.vision.py_transforms": _VISION,
    "mindspore.dataset.vision.transforms": _VISION,
    "mindspore.dataset.vision.utils": _VISION,
    **dict.fromkeys(
        [f"mindspore.experimental.optim.{name}"
         for name in ("adadelta", "adagrad", "adamax", "asgd", "nadam", "radam", "rmsprop", "rprop")],
        ("mindspore.experimental.optim",),
    ),
    "mindspore.experimental.optim.adamw": ("mindspore.experimental.optim", "mindspore.experimental.optim.adam"),
    "mindspore.graph": ("mindspore", "mindspore.common"),
    "mindspore.graph.api": ("mindspore", "mindspore.common", "mindspore.common.api"),
    **dict.fromkeys(
        [f"mindspore.mindrecord.tools.{name}_to_mr" for name in ("cifar10", "cifar100", "csv", "imagenet", "mnist", "tfrecord")],
        ("mindspore.mindrecord",),
    ),
    **dict.fromkeys(
        [
            f"mindspore.mindrecord.{name}"
            for name in ("filewriter", "filereader", "mindpage", "common", "common.exceptions", "shardutils", "tools")
        ],
        ("mindspore.mindrecord",),
    ),
    "mindspore.mint.distributed.distributed": ("mindspore.mint.distributed",),
    "mindspore.mint.functional": ("mindspore.mint.nn.functional",),
    **dict.fromkeys([f"mindspore.mint.optim.{name}" for name in ("adam", "adamw", "fused_adamw", "sgd")], ("mindspore.mint.optim",)),
    "mindspore.nn.acc": _NN,
    "mindspore.nn.cell": _NN,
    "mindspore.nn.dynamic_lr": _NN,
    "mindspore.nn.layer": _NN,
    "mindspore.nn.learning_rate_schedule": _NN,
    "mindspore.nn.loss": _NN,
    "mindspore.nn.metrics": ("mindspore.train", "mindspore.nn"),
    **dict.fromkeys([f"mindspore.nn.metrics.{name}" for name in _METRIC_FILES], ("mindspore.train", "mindspore.nn")),
    "mindspore.nn.optim": _NN,
    **dict.fromkeys([f"mindspore.nn.probability.bijector.{name}" for name in _BIJECTORS], ("mindspore.nn.probability.bijector",)),
    **dict.fromkeys([f"mindspore.nn.probability.distribution.{name}" for name in _DISTRIBUTIONS], _DISTRIBUTION),
    "mindspore.nn.sparse": _NN,
    "mindspore.nn.wrap": _NN,
    **{f"mindspore.{old}": ("mindspore.parallel._transformer",) for old in ("nn.transformer", "parallel.nn")},
    **{f"mindspore.{old}.{name}": (f"mindspore.parallel._transformer.{name}",) for old in ("nn.transformer", "parallel.nn") for name in (
        "layers", "loss", "moe", "op_parallel_config", "transformer",
    )},
    "mindspore.ops._grad": _OPS,
    "mindspore.ops._grad_experimental": _OPS,
    "mindspore.ops._grad_experimental.grad_comm_ops": ("mindspore.parallel._local_norm",),
    "mindspore.ops._primitive_cache": _OPS,
    "mindspore.ops._utils": _OPS,
    "mindspore.ops.auto_generate": _OPS,
    **dict.fromkeys(
        [f"mindspore.ops.auto_generate.{name}" for name in ("gen_extend_func", "gen_ops_def", "gen_ops_prim")],
        ("mindspore.ops.auto_generate", *_OPS),
    ),
    "mindspore.ops.composite": _OPS,
    "mindspore.ops.composite.multitype_ops": ("mindspore.ops.program.multitype_ops", *_OPS),
    "mindspore.ops.composite.multitype_ops.logic_not_impl": ("mindspore.ops.program.multitype_ops",),
    "mindspore.ops.function": _OPS,
    "mindspore.ops.functional": _OPS,
    "mindspore.ops.op_info_register": _OPS,
    "mindspore.ops.operations": _OPS,
    "mindspore.ops.operations._csr_ops": _OPS,
    "mindspore.ops.operations._embedding_cache_ops": _OPS,
    "mindspore.ops.operations._grad_ops": _OPS,
    "mindspore.ops.operations._infer_ops": ("mindspore.ops.auto_generate", "mindspore.ops"),
    "mindspore.ops.operations._inner_ops": _OPS,
    "mindspore.ops.operations._map_tensor_ops": _OPS,
    "mindspore.ops.operations._quant_ops": _OPS,
    "mindspore.ops.operations._rl_inner_ops": _OPS,
    "mindspore.ops.operations._scalar_ops": _OPS,
    "mindspore.ops.operations._sequence_ops": _OPS,
    "mindspore.ops.operations._sparse_grad_ops": _OPS,
    "mindspore.ops.primitive": _OPS,
    "mindspore.parallel.shard": ("mindspore.parallel._shard",),
    "mindspore.parallel.function": ("mindspore.parallel._shard",),
    "mindspore.parallel.function.reshard_func": ("mindspore.parallel._shard",),
    "mindspore.parallel.parameter_broadcast": ("mindspore.parallel._parameter_broadcast",),
    "mindspore.communication._comm_helper": ("mindspore.communication.management",),
    "mindspore.parallel.checkpoint_convert": ("mindspore.train",),
    **{f"mindspore.train.train_thor.{name}": ("mindspore.train.train_thor",) for name in ("convert_utils", "model_thor")},
    "mindspore.parallel.checkpoint_transform": ("mindspore.train",),
    "mindspore.parallel.transform_safetensors": ("mindspore.train",),
    "mindspore.profiler.profiling": ("mindspore.profiler", "mindspore"),
    "mindspore.tools": ("mindspore",),
    "mindspore.train._utils": _TRAIN,
    "mindspore.train.amp": ("mindspore.amp", "mindspore.train"),
    "mindspore.train.callback": _TRAIN,
    "mindspore.train.callback._callback": _TRAIN,
    "mindspore.train.callback._checkpoint": _TRAIN,
    "mindspore.train.callback._loss_monitor": _TRAIN,
    "mindspore.train.callback._time_monitor": _TRAIN,
    "mindspore.train.dataset_helper": _TRAIN,
    "mindspore.train.loss_scale_manager": ("mindspore.amp", "mindspore.train"),
    "mindspore.train.metrics": _TRAIN,
    "mindspore.train.model": _TRAIN,
    "mindspore.train.parallel_utils": _TRAIN,
    "mindspore.train.serialization": ("mindspore", "mindspore.train"),
    "mindspore.train.summary": _TRAIN,
}
"""A module without a file here provides the names of its homes, and so does every module below it."""

_METRICS = (
    "Accuracy", "BleuScore", "ConfusionMatrix", "ConfusionMatrixMetric", "CosineSimilarity", "Dice", "F1", "Fbeta",
    "HausdorffDistance", "Loss", "MAE", "MSE", "MeanSurfaceDistance", "Metric", "OcclusionSensitivity", "Perplexity",
    "Precision", "ROC", "Recall", "RootMeanSquareDistance", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy", "auc", "get_metric_fn", "names", "rearrange_inputs",
)

_EXCHANGES = (
    "P2POp", "TCPStore", "all_gather", "all_gather_into_tensor", "all_gather_into_tensor_uneven", "all_gather_object", "all_reduce",
    "all_to_all", "all_to_all_single", "all_to_all_v_c", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list",
    "destroy_process_group", "gather_into_tensor", "gather_object", "get_backend", "get_global_rank", "get_group_rank",
    "get_process_group_ranks", "get_rank", "get_world_size", "init_process_group", "irecv", "is_available", "is_initialized", "isend",
    "new_group", "recv", "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_tensor_uneven",
    "scatter_object_list", "scatter_tensor", "send", "send_object_list", "set_comm_ops_inplace",
)
"""Names of mindspore.ops.communication that mindspore.ops also has: all but `gather` and `scatter`, which are operators there."""

NAMES: dict[str, str] = {
    "mindspore.numpy.math_ops.sum_": "mindspore.numpy.sum",
    **{f"mindspore.ops.operations._inner_ops.{name}": f"mindspore.ops.program.adapter_tensors.{name}" for name in (
        "ConvertToAdapterTensor", "ConvertToMsTensor", "convert_to_adapter_tensor", "convert_to_ms_tensor",
    )},
    "mindspore.common.api.set_adapter_config": "mindspore.common._stub_tensor.set_adapter_config",
    "mindspore._checkparam.is_stub_tensor": "mindspore.common._stub_tensor.is_stub_tensor",
    "mindspore.ops.operations._inner_ops.SiLU": "mindspore.ops.auto_generate.SiLU",
    "mindspore.ops.operations._sequence_ops.list_equal": "mindspore.ops._list_equal",
    "mindspore.ops.operations._sequence_ops.shape_mul": "mindspore.ops._shape_mul",
    "mindspore.ops.operations._sequence_ops.tuple_equal": "mindspore.ops._tuple_equal",
    "mindspore.default_generator": "mindspore.common.generator.default_generator",
    "mindspore.mint.flatten_ext": "mindspore.ops.auto_generate.flatten_ext",
    "mindspore.mint.nn.cross_entropy": "mindspore.mint.nn.functional.cross_entropy",
    "mindspore.mint.nn.mse_loss_ext": "mindspore.ops.auto_generate.mse_loss_ext",
    "mindspore.ops.mse_loss_ext": "mindspore.ops.auto_generate.mse_loss_ext",
    "mindspore.ops.relu_": "mindspore.mint.nn.functional.relu_",
    # Metrics were in nn until 1.8; 2.10 still provides them there.
    **{f"mindspore.nn.{name}": f"mindspore.train.{name}" for name in _METRICS},
    # Operators renamed between 1.0 and 1.2.
    "mindspore.ops.BatchMatmul": "mindspore.ops.BatchMatMul",
    "mindspore.ops.GatherV2": "mindspore.ops.Gather",
    "mindspore.ops.Pack": "mindspore.ops.Stack",
    "mindspore.ops.TensorAdd": "mindspore.ops.Add",
    "mindspore.ops.Unpack": "mindspore.ops.Unstack",
    "mindspore.ops.tensor_add": "mindspore.ops.add",
    "mindspore.ops.tensor_div": "mindspore.ops.div",
    "mindspore.ops.tensor_mul": "mindspore.ops.mul",
    "mindspore.ops.tensor_pow": "mindspore.ops.pow",
    "mindspore.ops.tensor_sub": "mindspore.ops.sub",
    "mindspore.ops.tensor_ge": "mindspore.ops.ge",
    "mindspore.ops.tensor_gt": "mindspore.ops.gt",
    "mindspore.ops.tensor_le": "mindspore.ops.le",
    "mindspore.ops.tensor_lt": "mindspore.ops.less",
    **{f"mindspore.ops.{name}": f"mindspore.ops.communication.{name}" for name in _EXCHANGES},
    # Names of 1.x at the top.
    "mindspore.ms_class": "mindspore.jit_class",
    "mindspore.ms_function": "mindspore.jit",
    "mindspore.ops.constexpr": "mindspore.common.constexpr",
    "mindspore.ops.set_seed": "mindspore.set_seed",
    "mindspore.common.api.ms_function": "mindspore.jit",
    "mindspore.common.ms_function": "mindspore.jit",
    "mindspore.common.api._executor": "mindspore.common.api._cell_graph_executor",
    # Layers and losses.
    "mindspore.nn.LearningRateSchedule": "mindspore.nn.learning_rate_schedule.LearningRateSchedule",
    "mindspore.nn.SoftmaxCrossEntropyExpand": "mindspore.nn.SoftmaxCrossEntropyWithLogits",
    "mindspore.nn.loss.loss.Loss": "mindspore.nn.LossBase",
    "mindspore.nn.loss.loss._Loss": "mindspore.nn.LossBase",
    **{f"mindspore.nn.layer.rnn_cells.{name}": f"mindspore.nn.layer.rnns.{name}" for name in (
        "RNNCellBase", "_gru_cell", "_lstm_cell", "_rnn_relu_cell", "_rnn_tanh_cell",
    )},
    # Private functions that packages import.
    "mindspore._no_grad": "mindspore.common._no_grad",
    "mindspore.ops._primitive_cache._get_cache_prim": "mindspore.ops.declaration.primitive._get_cache_prim",
    "mindspore.ops._get_cache_prim": "mindspore.ops.declaration.primitive._get_cache_prim",
    "mindspore.ops.primitive._primexpr": "mindspore.common.constexpr",
    "mindspore.ops.primitive.constexpr": "mindspore.common.constexpr",
    "mindspore.ops.function.nn_func.pad_ext": "mindspore.mint.nn.functional.pad",
    **{f"mindspore.ops.function.nn_func.{name}": f"mindspore.ops.layers.attention.{name}" for name in (
        "linear", "multi_head_attention_forward", "_check_attn_mask_shape", "_check_kpm_shape", "_check_qkv_shape", "_in_projection",
        "_in_projection_packed", "_inner_dropout", "_inner_pad", "_interploate_ext_make_tuple",
        "_interpolate_ext_scale_factor_convert_size",
    )},
    **{f"mindspore.ops.function.random_func.{name}": f"mindspore.ops.random_draws.draws.{name}"
       for name in ("_get_seed", "_set_prim_op_user_data")},
    **{f"mindspore.amp.{name}": f"mindspore.train.amp.{name}" for name in (
        "AMP_BLACK_LIST", "AMP_WHITE_LIST", "_INNER_AMP_BLACK_LIST", "_auto_black_list", "_auto_mixed_precision_rewrite",
    )},
    **{f"mindspore.train.serialization.{name}": f"mindspore.train.serialization_parts.{name}" for name in (
        "_check_checkpoint_param", "_exec_save", "_get_merged_param_data", "_load_dismatch_prefix_params", "_parse_ckpt_proto",
        "_update_param",
    )},
    **{f"mindspore.train.serialization.{name}": f"mindspore.train._checkpoint_types.{name}" for name in (
        "tensor_to_ms_type", "tensor_to_np_type",
    )},
    # Names that programs import from modules that only import them in MindSpore.
    "mindspore.common.parameter.auto_parallel_context": "mindspore.parallel._auto_parallel_context.auto_parallel_context",
    # Training.
    "mindspore.ParallelMode": "mindspore.context.ParallelMode",
    "mindspore.train.ParallelMode": "mindspore.context.ParallelMode",
    **{f"mindspore.parallel.{name}": f"mindspore.train.distributed.{name}" for name in (
        "build_searched_strategy", "load_distributed_checkpoint", "merge_sliced_parameter", "restore_group_info_list",
    )},
    **{f"mindspore.parallel.{name}": f"mindspore.train.transform.{name}" for name in (
        "load_segmented_checkpoints", "merge_pipeline_strategys", "rank_list_for_transform", "transform_checkpoint_by_rank",
        "transform_checkpoints",
    )},
    "mindspore.parallel.unified_safetensors": "mindspore.train.unified_files.unified_safetensors",
    **{f"mindspore.parallel{module}.{old}": f"mindspore.train.transform.{new}" for module in ("", ".checkpoint_convert") for old, new in (
        ("rank_list_for_convert", "rank_list_for_transform"), ("convert_checkpoint_by_rank", "transform_checkpoint_by_rank"),
        ("convert_checkpoints", "transform_checkpoints"),
    )},
    **{f"mindspore.parallel._transformer.transformer.{name}": f"mindspore.parallel._transformer.blocks.{name}" for name in (
        "AttentionMask", "EmbeddingOpParallelConfig", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
        "TransformerEncoderLayer", "VocabEmbedding", "default_embedding_parallel_config", "default_moe_config",
    )},
    **{f"mindspore.parallel.nn.{module}{new}": f"mindspore.nn.{old}" for module, new, old in (
        *((module, *names) for module in ("", "parallel_cell_wrapper.") for names in (
            ("GradAccumulation", "GradAccumulationCell"), ("MicroBatchInterleaved",) * 2, ("Pipeline", "PipelineCell"),
            ("PipelineCell",) * 2,
        )),
        *((module, "PipelineGradReducer", "PipelineGradReducer") for module in ("", "parallel_grad_reducer.")),
    )},
    "mindspore.common.is_tensor": "mindspore.ops.is_tensor",
    "mindspore.cells_compile_cache": "mindspore.common.api.cells_compile_cache",
    "mindspore.flops_collection": "mindspore.common.flops_collection",
    "mindspore._c_expression.CommHandle": "mindspore.communication.comm_func.CommHandle",
    "mindspore._c_expression.random_normal": "mindspore.common.initializer.random_normal",
    "mindspore.train.serialization.Checkpoint": "mindspore.train.checkpoint_pb2.Checkpoint",
    "mindspore._c_expression.init_exec_dataset": "mindspore.common.api.init_exec_dataset",
    **{f"mindspore.common.{name}": f"mindspore.train.export.{name}" for name in ("load_mindir", "save_mindir")},
    "mindspore.ops.Tensor": "mindspore.Tensor",
    "mindspore.ops.function.nn_func.avg_pool2d_ext": "mindspore.mint.nn.functional.avg_pool2d",
    "mindspore.nn.get_metrics": "mindspore.train.metrics.get_metrics",
    "mindspore.train.get_metrics": "mindspore.train.metrics.get_metrics",
    "mindspore.common.dtype.QuantDtype": "mindspore.common.QuantDtype",
    "mindspore.common.lazy_inline": "mindspore.parallel._shard.lazy_inline",
    "mindspore.ops.functional.reduce_prod": "mindspore.ops.reductions.reduction._reduce_prod",
    **{f"mindspore._checkparam.{name}": f"mindspore._tuples.{name}" for name in ("_expand_tuple", "_expand_sequence_to_tuple")},
    **{f"mindspore._checkparam.{name}{kind}": f"mindspore._tuples.{name}{kind}" for name in ("once", "twice", "triple") for kind in (
        "", "_sequence",
    )},
    "mindspore.train.model._transfer_tensor_to_tuple": "mindspore.train._utils._transfer_tensor_to_tuple",
    "mindspore.train.model._StepSync": "mindspore.train.callback._callback._StepSync",
    "mindspore.ops.shard": "mindspore.parallel._shard.shard",
    "mindspore.parallel.shard": "mindspore.parallel._shard.shard",
    "mindspore.ops.reshard": "mindspore.parallel._shard.reshard",
    **{f"mindspore.parallel{module}.set_op_strategy_config": "mindspore.parallel.strategy_config.set_op_strategy_config" for module in (
        "", ".checkpoint_transform",
    )},
    "mindspore.parallel.Layout": "mindspore.parallel._shard.Layout",
    **{f"mindspore.parallel{module}.sync_pipeline_shared_parameters": "mindspore.parallel._shard.sync_pipeline_shared_parameters"
       for module in ("", ".checkpoint_transform")},
    **{f"mindspore.communication.comm_func.get_cache_group_{name}": f"mindspore.communication.management.{home}" for name, home in (
        ("rank", "get_rank"), ("size", "get_group_size"),
    )},
    "mindspore.parallel.AutoParallel": "mindspore.parallel.auto_parallel.AutoParallel",
    "mindspore.parallel.parameter_broadcast": "mindspore.parallel._parameter_broadcast.parameter_broadcast",
    "mindspore.parameter_broadcast": "mindspore.parallel._parameter_broadcast.parameter_broadcast",
    # Datasets.
    **{f"mindspore.dataset.{name}": f"mindspore.dataset.core.config.{name}" for name in (
        "get_callback_timeout", "get_debug_mode", "get_enable_watchdog", "get_error_samples_mode", "get_multiprocessing_start_method",
        "get_multiprocessing_timeout_interval", "get_num_parallel_workers", "get_video_backend", "set_video_backend",
    )},
    "mindspore.dataset.Implementation": "mindspore.dataset.transforms.py_transforms_util.Implementation",
    "mindspore.dataset.text.transforms.Implementation": "mindspore.dataset.transforms.py_transforms_util.Implementation",
    "mindspore.dataset.ImageFolderDatasetV2": "mindspore.dataset.ImageFolderDataset",
    "mindspore.dataset.transforms.ComposeOp": "mindspore.dataset.transforms.Compose",
    "mindspore.dataset.vision.ComposeOp": "mindspore.dataset.transforms.Compose",
}
"""A single name that changed its spelling or its home. It is searched before the homes of its module."""


def homes_of_module(module: str) -> tuple[str, ...]:
    """Return the homes of a moved module: from its own row, or from the nearest parent's row. Empty if none moved."""
    while module:
        if module in MODULES:
            return MODULES[module]
        module = module.rpartition(".")[0]
    return ()

EXPORTED: dict[str, str] = {
    "mindspore.common": (
        "_Function _no_grad default_generator dtype is_tensor lazy_inline load_mindir no_inline save_mindir set_recursion_limit"
    ),
    "mindspore.nn": (
        "Accuracy BleuScore ConfusionMatrix ConfusionMatrixMetric CosineSimilarity Dice F1 Fbeta HausdorffDistance Loss MAE MSE "
        "MeanSurfaceDistance Metric OcclusionSensitivity Perplexity Precision ROC Recall RootMeanSquareDistance Top1CategoricalAccuracy "
        "Top5CategoricalAccuracy TopKCategoricalAccuracy auc get_metric_fn get_metrics names rearrange_inputs"
    ),
    "mindspore.nn.layer.basic": (
        "Dropout1d Dropout2d Dropout2dExt Dropout3d DropoutExt L1Regularizer Linear MatrixDiag MatrixDiagPart MatrixSetDiag Norm OneHot "
        "Roll Tril Triu Unflatten Unfold Upsample"
    ),
    "mindspore.nn.layer.embedding": "Embedding",
    "mindspore.ops": "GatherV2 Pack Unpack constexpr reshard",
    "mindspore.parallel": "shard",
    "mindspore.nn.layer.pooling": (
        "AdaptiveAvgPool1d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d FractionalMaxPool2d FractionalMaxPool3d "
        "LPPool1d LPPool2d MaxUnpool1d MaxUnpool2d MaxUnpool3d"
    ),
}
"""Names of `from module import *` in addition to the module's own list: MindSpore's names that are defined elsewhere here."""

_OF_OPERATORS = frozenset({"abs", "all", "any", "max", "min", "pow", "range", "round", "slice", "sum"})
BUILTINS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("mindspore.dataset", "mindspore.dataset.engine", "mindspore.dataset.engine.datasets"), frozenset({"zip"})),
    "mindspore.ops": _OF_OPERATORS,
    "mindspore.ops.function": _OF_OPERATORS,
    "mindspore.ops.function.array_func": frozenset({"max", "min", "range", "slice"}),
    "mindspore.ops.function.math_func": frozenset({"abs", "all", "any", "pow", "round", "sum"}),
    "mindspore.ops.functional": _OF_OPERATORS,
}
"""Names of Python's builtins that `from module import *` replaces in MindSpore 2.10; no other moved module exports such a name."""
