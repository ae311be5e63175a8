"""The front end with MindSpore's names. `import mindspore` returns this package after `torchspore.install()`."""
from __future__ import annotations

import importlib
import os
from typing import Any

import torchspore.engine
from torchspore.base.lazy_modules import LazyModule
from torchspore.engine.front_end import FRONT
from torchspore.graph import splitter
from torchspore.mindspore import common, context, nn, ops
from torchspore.mindspore.common import *
from torchspore.mindspore.common import dtype as dtype
from torchspore.mindspore.common.dtype import bool, dtype_to_nptype, dtype_to_pytype, float, int, pytype_to_dtype
from torchspore.mindspore.context import *
from torchspore.mindspore.ops import get_grad, grad, is_tensor, jacfwd, jacrev, jvp, value_and_grad, vjp, vmap
from torchspore.mindspore.ops.declaration import error_boundary
from torchspore.public_names import missing

_LAZY = {
    "installation": ("run_check",),
    "mindrecord": (
        "FAILED", "SUCCESS", "Cifar10ToMR", "Cifar100ToMR", "CsvToMR", "FileReader", "FileWriter", "ImageNetToMR", "MindPage", "MnistToMR",
        "TFRecordToMR", "set_dec_mode", "set_enc_key", "set_enc_mode",
    ),
    "common.dump": ("set_dump",),
    "common.saved_tensors": ("register_saved_tensors_hooks", "saved_tensors_hooks"),
    "common.shared_memory": ("frombuffer", "from_dlpack", "to_dlpack"),
    "common.symbol": ("Symbol", "enable_dynamic"),
    "log": ("get_level", "get_log_config"),
    "parallel": ("set_algo_parameters", "get_algo_parameters", "reset_algo_parameters"),
    "profiler": ("EnvProfiler", "Profiler"),
    "train": (
        "Model", "Callback", "LossMonitor", "TimeMonitor", "ModelCheckpoint", "CheckpointConfig", "LearningRateScheduler", "EarlyStopping",
        "ReduceLROnPlateau", "History", "LambdaCallback", "RunContext", "FixedLossScaleManager", "DynamicLossScaleManager",
        "LossScaleManager",
        "save_checkpoint", "load_checkpoint", "load_param_into_net", "load_checkpoint_async", "parse_print", "data_sink",
        "connect_network_with_dataset",
        "Metric", "Accuracy", "Loss", "MAE", "MSE", "Precision", "Recall", "F1", "Fbeta", "Top1CategoricalAccuracy",
        "Top5CategoricalAccuracy",
        "TopKCategoricalAccuracy", "ConfusionMatrix", "ConfusionMatrixMetric", "BleuScore", "CosineSimilarity", "Dice", "HausdorffDistance",
        "MeanSurfaceDistance", "RootMeanSquareDistance", "OcclusionSensitivity", "Perplexity", "ROC", "auc", "names", "get_metric_fn",
        "rearrange_inputs", "get_metrics", "export", "load", "build_train_network", "DatasetHelper", "SummaryRecord", "SummaryCollector",
        "ConvertModelUtils", "ConvertNetUtils", "OnRequestExit", "BackupAndRestore", "FlopsUtilizationCollector",
        "load_distributed_checkpoint", "merge_sliced_parameter",
        "load_segmented_checkpoints", "merge_pipeline_strategys", "rank_list_for_transform", "transform_checkpoint_by_rank",
        "transform_checkpoints", "build_searched_strategy", "restore_group_info_list", "ckpt_to_safetensors", "safetensors_to_ckpt",
        "unified_safetensors",
        "async_ckpt_thread_status",
    ),
    "runtime": (
        "Event", "Stream", "StreamCtx", "communication_stream", "current_stream", "default_stream", "dispatch_threads_num", "empty_cache",
        "launch_blocking", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
        "memory_summary", "reset_max_memory_allocated", "reset_max_memory_reserved", "reset_peak_memory_stats", "set_cpu_affinity",
        "set_cur_stream", "set_kernel_launch_capture", "set_kernel_launch_group", "set_memory", "synchronize",
    ),
    "train.export": ("load_mindir", "save_mindir"),
    "rewrite": ("Node", "NodeType", "ScopedValue", "SymbolTree"),
    "parallel._shard": ("Layout", "lazy_inline", "no_inline", "reshard", "shard", "sync_pipeline_shared_parameters"),
    "parallel.auto_parallel": ("AutoParallel",),
    "utils.runtime_execution_order_check": ("comm_exec_order_check", "runtime_execution_order_check"),
}
_HOMES = {name: module for module, listed in _LAZY.items() for name in listed}
_MODULES = (
    "amp", "boost", "communication", "dataset", "device_context", "hal", "log", "mindrecord", "mint", "multiprocessing", "numpy", "onnx",
    "parallel", "profiler", "rewrite", "runtime", "scipy", "train", "utils", "version",
)
_missing = missing(__name__)
splitter.REGISTRY.splitter = LazyModule("torchspore.distributed.graph_splitter")
FRONT.sparse_operators = LazyModule("torchspore.mindspore.ops.sparse_formats.sparse_tensors")
FRONT.batches = lambda: importlib.import_module(f"{__name__}.dataset.engine.iterators").Iterator


def __getattr__(name: str) -> Any:
    """Load rarely used names on demand; raise for unknown ones."""
    if name in _HOMES or name in _MODULES:
        try:
            module = importlib.import_module(f"{__name__}.{_HOMES.get(name, name)}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{_HOMES.get(name, name)}":
                raise
            return _missing(name)
        error_boundary.close()
        value = module if name in _MODULES else getattr(module, name)
        globals()[name] = value
        return value
    return _missing(name)


__all__ = [
    "common", "context", "dtype", "dtype_to_nptype", "dtype_to_pytype", "get_grad", "grad", "is_tensor", "jacfwd", "jacrev",
    "jvp", "nn", "ops", "pytype_to_dtype", "value_and_grad", "vjp", "vmap",
    *common.__all__, *context.__all__, *_HOMES,
]
error_boundary.close()
if os.environ.get("MS_PROFILER_OPTIONS"):
    __getattr__("EnvProfiler").init_profiler()
