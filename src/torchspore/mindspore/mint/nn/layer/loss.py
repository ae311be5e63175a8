"""Losses as Cells."""
from __future__ import annotations

from torchspore.mindspore.mint.nn import functional as F
from torchspore.mindspore.mint.nn.layer.shared import layer

BCELoss = layer("BCELoss", F.binary_cross_entropy, weight=None, reduction="mean")
BCEWithLogitsLoss = layer("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, weight=None, reduction="mean", pos_weight=None)
CosineEmbeddingLoss = layer("CosineEmbeddingLoss", F.cosine_embedding_loss, margin=0.0, reduction="mean")
CrossEntropyLoss = layer("CrossEntropyLoss", F.cross_entropy, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0)
KLDivLoss = layer("KLDivLoss", F.kl_div, reduction="mean", log_target=False)
L1Loss = layer("L1Loss", F.l1_loss, reduction="mean")
MSELoss = layer("MSELoss", F.mse_loss, reduction="mean")
NLLLoss = layer("NLLLoss", F.nll_loss, weight=None, ignore_index=-100, reduction="mean")
SmoothL1Loss = layer("SmoothL1Loss", F.smooth_l1_loss, reduction="mean", beta=1.0)
SoftMarginLoss = layer("SoftMarginLoss", F.soft_margin_loss, reduction="mean")
