"""Metrics of a network's outputs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.base.suggest import closest
from torchspore.base.text import message, short
from torchspore.engine.tensors import torch_interop
from torchspore.mindspore.train.metrics.classification import (
    F1,
    Accuracy,
    ConfusionMatrix,
    Fbeta,
    Precision,
    Recall,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from torchspore.mindspore.train.metrics.confusion_rates import ConfusionMatrixMetric
from torchspore.mindspore.train.metrics.error import MAE, MSE, CosineSimilarity, Dice, Loss, Perplexity, auc
from torchspore.mindspore.train.metrics.metric import EvaluationBase, Metric, rearrange_inputs
from torchspore.mindspore.train.metrics.occlusion import OcclusionSensitivity
from torchspore.mindspore.train.metrics.ranking import ROC, BleuScore
from torchspore.mindspore.train.metrics.surface import HausdorffDistance, MeanSurfaceDistance, RootMeanSquareDistance
from torchspore.public_names import missing

_FACTORY: dict[str, Callable[..., Any]] = {
    "accuracy": Accuracy, "acc": Accuracy, "precision": Precision, "recall": Recall, "F1": F1, "topk": TopKCategoricalAccuracy,
    "top_1_accuracy": Top1CategoricalAccuracy, "top_5_accuracy": Top5CategoricalAccuracy, "mae": MAE, "mse": MSE, "loss": Loss,
    "confusion_matrix": ConfusionMatrix, "confusion_matrix_metric": ConfusionMatrixMetric,
    "occlusion_sensitivity": OcclusionSensitivity, "cosine_similarity": CosineSimilarity, "dice": Dice, "perplexity": Perplexity,
    "bleu_score": BleuScore,
    "hausdorff_distance": HausdorffDistance, "mean_surface_distance": MeanSurfaceDistance, "roc": ROC,
    "root_mean_square_distance": RootMeanSquareDistance, "auc": auc,
}


def names() -> list[str]:
    """Returns the names that `get_metric_fn` and `Model(metrics=...)` accept."""
    return sorted(_FACTORY)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Any:
    """Returns the metric of that name. Raises KeyError for an unknown name."""
    if name not in _FACTORY:
        near = closest(str(name), list(_FACTORY))
        raise KeyError(message(f"metric {name!r}", f"one of {', '.join(names())}", hint=f"write {near!r}" if near else None))
    return _FACTORY[name](*args, **kwargs)


def get_metrics(metrics: Any) -> dict[str, Metric]:
    """Return metrics by name, from None, a set of names, or a dict from name to Metric. Raises TypeError for anything else."""
    if metrics is None:
        return {}
    if isinstance(metrics, dict):
        metrics = {name: torch_interop.converted_metric(metric) for name, metric in metrics.items()}
        for name, metric in metrics.items():
            if not isinstance(name, str) or not isinstance(metric, Metric):
                raise TypeError(
                    message(f"metrics={{{short(name)}: {short(metric)}}}", "names with Metrics", hint="write {'accuracy': Accuracy()}")
                )
        return metrics
    if isinstance(metrics, set):
        return {name: get_metric_fn(name) for name in sorted(metrics)}
    raise TypeError(
        message(f"metrics={short(metrics)}", f"None, a set or a dict, got {type(metrics).__name__}", hint="write metrics={'accuracy'}")
    )


__getattr__ = missing(__name__)
