"""What 2.10 takes that is easily refused: words in either case, stretched operands, classes that there are not, negative counts."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from parity.case import case
from parity.waves import of, t

FORMS = {
    "bce_with_logits": lambda: ops.binary_cross_entropy_with_logits(of(3, 4), of(3, 4), of(3, 4), of(3, 4), "MEAN"),
    "BCEWithLogitsLoss": lambda: ops.BCEWithLogitsLoss("SUM")(of(3, 4), of(3, 4), of(3, 4), of(3, 4)),
    "NLLLoss": lambda: ops.NLLLoss("MEAN")(of(3, 4), t([1, 2, 0], np.int32), of(4))[0],
    "SmoothL1Loss": lambda: ops.SmoothL1Loss(0.5, "NONE")(of(4, 5), of(4, 5, start=1.0)),
    "grid_sample": lambda: ops.grid_sample(of(2, 3, 5, 6), of(2, 3, 4, 2), "NEAREST", "BORDER", align_corners=False),
    "GridSampler2D": lambda: ops.GridSampler2D("BILINEAR", "ZEROS")(of(2, 3, 5, 6), of(2, 3, 4, 2)),
    "Meshgrid": lambda: ops.Meshgrid("IJ")((of(5), of(2)))[0],
    "fft": lambda: ops.fft(of(2, 8), 6, 1, "ORTHO"),
    "TensorScatterElements": lambda: ops.TensorScatterElements(0, "ADD")(of(4, 3), t([[0, 1, 2]], np.int64), of(1, 3)),
    "margin_ranking": lambda: ops.margin_ranking_loss(of(4), of(3, 4, start=1.0), of(1, 3, 4), 0.2, "none"),
    "margin_ranking_layer": lambda: nn.MarginRankingLoss(0.3)(of(3, 4), of(4, start=1.0), of(4)),
    "gaussian_nll": lambda: ops.gaussian_nll_loss(of(4), of(3, 4, start=1.0), ops.abs(of(3, 4)) + 0.1),
    "gaussian_nll_variance": lambda: ops.gaussian_nll_loss(of(3, 4), of(3, 4, start=1.0), ops.abs(of(4)) + 0.1, True, 0.3, "none"),
    "gaussian_nll_layer": lambda: nn.GaussianNLLLoss()(of(1, 3, 4), of(3, 4, start=1.0), ops.abs(of(3, 4)) + 0.1),
    "in_top_k": lambda: ops.intopk(of(4, 3), t([-1, 7, 0, 2], np.int32), 2),
    "gather_last_batch": lambda: ops.gather(of(2, 3), t([[0, 1], [2, 2]], np.int32), 1, -1),
    "Gather_no_batch": lambda: ops.Gather(-1)(of(3), t([0, 2], np.int32), 0),
    "layer_norm_of_float64": lambda: nn.LayerNorm((4,))(of(3, 4).astype(ms.float64)),
}


@case(over=FORMS, rtol=2e-6, atol=1e-6, graph=True)
def taken(call):
    return {"found": call().asnumpy()}
