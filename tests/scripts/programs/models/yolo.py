"""A YOLO-style net of two scales: CSP-like blocks, SPP, upsampling, a loss over grid cells with IoU, and NMS in Python (2.x)."""
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)
ANCHORS = np.array([[[6, 8], [12, 10]], [[20, 24], [28, 18]]], np.float32)


class ConvNormAct(nn.Cell):
    def __init__(self, c1, c2, k=1, s=1):
        super().__init__()
        self.conv = nn.Conv2d(c1, c2, k, s, "pad", k // 2, has_bias=False)
        self.bn = nn.BatchNorm2d(c2, momentum=1 - 0.03, eps=1e-3)
        self.act = nn.SiLU()

    def construct(self, x):
        return self.act(self.bn(self.conv(x)))


class C3(nn.Cell):
    def __init__(self, c1, c2, n=1):
        super().__init__()
        c_ = c2 // 2
        self.conv1, self.conv2, self.conv3 = ConvNormAct(c1, c_), ConvNormAct(c1, c_), ConvNormAct(2 * c_, c2)
        self.m = nn.SequentialCell([nn.SequentialCell([ConvNormAct(c_, c_), ConvNormAct(c_, c_, 3)]) for _ in range(n)])

    def construct(self, x):
        return self.conv3(ops.concat((self.m(self.conv1(x)), self.conv2(x)), 1))


class SPPF(nn.Cell):
    def __init__(self, c):
        super().__init__()
        self.conv1, self.conv2 = ConvNormAct(c, c // 2), ConvNormAct(c * 2, c)
        self.pool = nn.MaxPool2d(kernel_size=5, stride=1, pad_mode="same")

    def construct(self, x):
        x = self.conv1(x)
        y1 = self.pool(x)
        y2 = self.pool(y1)
        return self.conv2(ops.concat((x, y1, y2, self.pool(y2)), 1))


class Yolo(nn.Cell):
    def __init__(self, nc=3):
        super().__init__()
        self.no = nc + 5
        self.stem = nn.SequentialCell(ConvNormAct(3, 8, 3, 2), ConvNormAct(8, 16, 3, 2), C3(16, 16))
        self.down = nn.SequentialCell(ConvNormAct(16, 32, 3, 2), C3(32, 32), SPPF(32))
        self.lateral = ConvNormAct(32, 16)
        self.fuse = C3(32, 16)
        self.detect = nn.CellList([nn.Conv2d(16, 2 * self.no, 1, has_bias=True), nn.Conv2d(32, 2 * self.no, 1, has_bias=True)])

    def construct(self, x):
        p3 = self.stem(x)
        p4 = self.down(p3)
        up = ops.interpolate(self.lateral(p4), size=p3.shape[2:], mode="nearest")
        p3 = self.fuse(ops.concat((up, p3), 1))
        outputs = ()
        for feature, head in zip((p3, p4), self.detect):
            y = head(feature)
            bs, _, ny, nx = y.shape
            outputs += (y.reshape(bs, 2, self.no, ny, nx).transpose(0, 1, 3, 4, 2),)
        return outputs


def box_iou(box1, box2, eps=1e-7):
    """The complete IoU of boxes given by centre and size."""
    x1, y1, w1, h1 = ops.split(box1, 1, -1)
    x2, y2, w2, h2 = ops.split(box2, 1, -1)
    left, right = ops.maximum(x1 - w1 / 2, x2 - w2 / 2), ops.minimum(x1 + w1 / 2, x2 + w2 / 2)
    top, bottom = ops.maximum(y1 - h1 / 2, y2 - h2 / 2), ops.minimum(y1 + h1 / 2, y2 + h2 / 2)
    inter = ops.clamp(right - left, min=0.0) * ops.clamp(bottom - top, min=0.0)
    iou = inter / (w1 * h1 + w2 * h2 - inter + eps)
    cw = ops.maximum(x1 + w1 / 2, x2 + w2 / 2) - ops.minimum(x1 - w1 / 2, x2 - w2 / 2)
    ch = ops.maximum(y1 + h1 / 2, y2 + h2 / 2) - ops.minimum(y1 - h1 / 2, y2 - h2 / 2)
    rho2 = (x2 - x1) ** 2 + (y2 - y1) ** 2
    v = 4 / np.pi ** 2 * (ops.atan(w2 / (h2 + eps)) - ops.atan(w1 / (h1 + eps))) ** 2
    alpha = ops.stop_gradient(v / (v - iou + 1 + eps))
    return (iou - rho2 / (cw ** 2 + ch ** 2 + eps) - v * alpha).squeeze(-1)


class Loss(nn.Cell):
    def __init__(self):
        super().__init__()
        self.anchors = Tensor(ANCHORS)
        self.bce = nn.BCEWithLogitsLoss(reduction="none")

    def construct(self, outputs, targets, masks):
        total = ops.zeros((), ms.float32)
        for i in range(2):
            p, t, mask = outputs[i], targets[i], masks[i]
            xy = ops.sigmoid(p[..., :2]) * 2 - 0.5
            wh = (ops.sigmoid(p[..., 2:4]) * 2) ** 2 * self.anchors[i].view(1, 2, 1, 1, 2)
            iou = box_iou(ops.concat((xy, wh), -1), t[..., :4])
            count = ops.maximum(mask.sum(), Tensor(1.0))
            box = ((1 - iou) * mask).sum() / count
            objectness = self.bce(p[..., 4], ops.stop_gradient(ops.clamp(iou, 0.0, 1.0)) * mask).mean()
            classes = (self.bce(p[..., 5:], t[..., 4:]).mean(-1) * mask).sum() / count
            total += 0.05 * box + objectness + 0.5 * classes
        return total * 2


def non_max_suppression(boxes, scores, threshold):
    order, keep = scores.argsort()[::-1], []
    while order.size > 0:
        i = order[0]
        keep.append(i)
        low = np.maximum(boxes[i, :2], boxes[order[1:], :2])
        high = np.minimum(boxes[i, 2:], boxes[order[1:], 2:])
        inter = np.prod(np.clip(high - low, 0, None), 1)
        area = np.prod(boxes[:, 2:] - boxes[:, :2], 1)
        order = order[1:][inter / (area[i] + area[order[1:]] - inter) <= threshold]
    return keep


random = np.random.RandomState(51)
images = Tensor(random.rand(2, 3, 32, 32), ms.float32)
targets, masks = [], []
for side in (8, 4):
    box = np.concatenate([random.rand(2, 2, side, side, 2), random.uniform(4, 24, (2, 2, side, side, 2))], -1)
    label = np.eye(3)[random.randint(0, 3, (2, 2, side, side))]
    targets.append(Tensor(np.concatenate([box, label], -1), ms.float32))
    masks.append(Tensor(random.rand(2, 2, side, side) > 0.8, ms.float32))
net, loss_fn = begin(Yolo(), 7), Loss()
optimizer = nn.SGD(net.trainable_params(), 0.01, momentum=0.937, nesterov=True, weight_decay=5e-4)


def forward(x, *rest):
    return loss_fn(net(x), rest[:2], rest[2:])


grad_fn = ops.value_and_grad(forward, None, weights=optimizer.parameters)
net.set_train()


def step():
    loss, grads = grad_fn(images, *targets, *masks)
    optimizer(grads)
    return loss


train(step, net)
net.set_train(False)
prediction = net(images)[1][0].sigmoid().asnumpy().reshape(-1, 8)
corners = np.concatenate([prediction[:, :2] * 8 - prediction[:, 2:4] * 8, prediction[:, :2] * 8 + prediction[:, 2:4] * 8], 1)
detections = non_max_suppression(corners, prediction[:, 4] * prediction[:, 5:].max(1), 0.6)
report(len(detections), prediction[detections[:3], 4])
