"""`mindspore.train`: Model, callbacks, metrics, checkpoints."""
from __future__ import annotations

from torchspore.mindspore.train import amp, callback, loss_scale_manager, metrics, model, serialization
from torchspore.mindspore.train.amp import build_train_network
from torchspore.mindspore.train.callback import (
    BackupAndRestore,
    Callback,
    CheckpointConfig,
    EarlyStopping,
    FlopsUtilizationCollector,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    ModelCheckpoint,
    OnRequestExit,
    ReduceLROnPlateau,
    RunContext,
    SummaryCollector,
    TimeMonitor,
)
from torchspore.mindspore.train.conversion import ckpt_to_safetensors, safetensors_to_ckpt
from torchspore.mindspore.train.dataset_helper import DatasetHelper, connect_network_with_dataset, data_sink
from torchspore.mindspore.train.distributed import (
    build_searched_strategy,
    load_distributed_checkpoint,
    merge_sliced_parameter,
    restore_group_info_list,
)
from torchspore.mindspore.train.export import export, load
from torchspore.mindspore.train.loss_scale_manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from torchspore.mindspore.train.metrics import (
    F1,
    MAE,
    MSE,
    ROC,
    Accuracy,
    BleuScore,
    ConfusionMatrix,
    ConfusionMatrixMetric,
    CosineSimilarity,
    Dice,
    Fbeta,
    HausdorffDistance,
    Loss,
    MeanSurfaceDistance,
    Metric,
    OcclusionSensitivity,
    Perplexity,
    Precision,
    Recall,
    RootMeanSquareDistance,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
    auc,
    get_metric_fn,
    names,
    rearrange_inputs,
)
from torchspore.mindspore.train.model import Model
from torchspore.mindspore.train.print_files import parse_print
from torchspore.mindspore.train.serialization import (
    async_ckpt_thread_status,
    load_checkpoint,
    load_checkpoint_async,
    load_param_into_net,
    save_checkpoint,
)
from torchspore.mindspore.train.summary import SummaryRecord
from torchspore.mindspore.train.train_thor import ConvertModelUtils, ConvertNetUtils
from torchspore.mindspore.train.transform import (
    load_segmented_checkpoints,
    merge_pipeline_strategys,
    rank_list_for_transform,
    transform_checkpoint_by_rank,
    transform_checkpoints,
)
from torchspore.mindspore.train.unified_files import unified_safetensors
from torchspore.public_names import missing

__getattr__ = missing(__name__)
