"""A detector of two stages: anchors, encoded boxes, non-maximum suppression, ROIAlign, heads for boxes and classes; hard negatives are mined."""
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import numpy as np
from mindspore import Tensor
from mindspore.ops import operations as P

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)
STRIDE, SIZE = 4, 8


def anchors():
    centre = (np.arange(SIZE) + 0.5) * STRIDE
    cx, cy = np.meshgrid(centre, centre)
    boxes = [np.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], -1) for w, h in ((8, 8), (16, 8), (8, 16))]
    return np.stack(boxes, 2).reshape(-1, 4).astype(np.float32)


class Detector(nn.Cell):
    def __init__(self):
        super().__init__()
        self.backbone = nn.SequentialCell([
            nn.Conv2d(3, 6, 3, stride=2, pad_mode="same"), nn.BatchNorm2d(6), nn.ReLU(),
            nn.Conv2d(6, 8, 3, stride=2, pad_mode="same"), nn.ReLU(),
        ])
        self.rpn, self.score, self.delta = nn.Conv2d(8, 8, 3, has_bias=True), nn.Conv2d(8, 3, 1, has_bias=True), nn.Conv2d(8, 12, 1, has_bias=True)
        self.align = P.ROIAlign(3, 3, 1 / STRIDE, 2)
        self.fc, self.cls, self.reg = nn.Dense(8 * 9, 16), nn.Dense(16, 3), nn.Dense(16, 4)
        self.anchors = Tensor(anchors())
        self.encode, self.decode = P.BoundingBoxEncode(), P.BoundingBoxDecode(max_shape=(32, 32))
        self.nms, self.iou, self.valid = P.NMSWithMask(0.6), P.IOU(), P.CheckValid()
        self.meta = Tensor([32, 32, 1], ms.float32)

    def features(self, image):
        f = self.backbone(image)
        h = ops.relu(self.rpn(f))
        return f, ops.transpose(self.score(h), (0, 2, 3, 1)).reshape(-1), ops.transpose(self.delta(h), (0, 2, 3, 1)).reshape(-1, 4)

    def construct(self, image, boxes, labels):
        f, scores, deltas = self.features(image)
        overlap = self.iou(self.anchors, boxes)          # rows: boxes, columns: anchors
        best, which = overlap.max(axis=0), overlap.argmax(0).astype(ms.int32)
        positive = ops.logical_and(best > 0.4, self.valid(self.anchors, self.meta).astype(ms.bool_))
        target = self.encode(self.anchors, ops.gather(boxes, which, 0))
        objectness = ops.binary_cross_entropy_with_logits(
            scores, positive.astype(ms.float32), ops.ones_like(scores), ops.ones_like(scores), reduction="none")
        hardest, _ = ops.topk(ops.where(positive, ops.zeros_like(objectness), objectness), 16)
        rpn_loss = hardest.mean() + (objectness * positive).sum() / ops.maximum(positive.astype(ms.float32).sum(), 1.0)
        rpn_loss += (ops.smooth_l1_loss(deltas, target, reduction="none").sum(1) * positive).mean()
        proposals = ops.stop_gradient(self.decode(self.anchors, deltas))
        top, index = ops.topk(ops.stop_gradient(scores), 12)
        proposals = ops.concat((ops.gather(proposals, index, 0)[:10], boxes), 0)
        rois = ops.concat((ops.zeros((proposals.shape[0], 1), ms.float32), proposals), 1)
        h = ops.relu(self.fc(self.align(f, rois).reshape(rois.shape[0], -1)))
        overlap = self.iou(proposals, boxes)
        matched = overlap.argmax(0).astype(ms.int32)
        is_object = overlap.max(axis=0) > 0.5
        expected = ops.select(is_object, ops.gather(labels, matched, 0), ops.zeros_like(matched))
        loss = ops.cross_entropy(self.cls(h), expected)
        offsets = self.encode(proposals, ops.gather(boxes, matched, 0))
        loss += (ops.smooth_l1_loss(self.reg(h), offsets, reduction="none").sum(1) * is_object.astype(ms.float32)).mean()
        return loss + rpn_loss

    def detect(self, image):
        _, scores, deltas = self.features(image)
        top, index = ops.topk(scores, 20)
        boxes = self.decode(ops.gather(self.anchors, index, 0), ops.gather(deltas, index, 0))
        kept, at, mask = self.nms(ops.concat((boxes, ops.sigmoid(top).expand_dims(1)), 1))
        return kept, at, mask


random = np.random.RandomState(6)
image = Tensor(random.rand(1, 3, 32, 32), ms.float32)
boxes = Tensor([[3, 3, 14, 12], [10, 12, 25, 22]], ms.float32)
labels = Tensor([1, 2], ms.int32)
net = begin(Detector(), 7, 0.7)
step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.02, 0.9, weight_decay=1e-4))
step.set_train()
train(lambda: step(image, boxes, labels), net)
net.set_train(False)
detected, at, mask = net.detect(image)
print(mask.asnumpy().astype(int).sum(), sorted(at.asnumpy().tolist()) == list(range(20)))
report(detected[:3])
