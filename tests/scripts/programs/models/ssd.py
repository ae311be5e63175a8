"""SSD: two feature maps, focal classification and smooth-L1 boxes over matched anchors, then decoding and NMSWithMask (1.x)."""
import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

from measured import MODE, begin, report, train

context.set_context(mode=MODE, device_target="CPU")
CLASSES, ANCHORS = 4, 2


def anchors():
    boxes = []
    for side, scale in ((8, 0.2), (4, 0.45)):
        for row in range(side):
            for column in range(side):
                for ratio in (1.0, 1.6):
                    boxes.append([(column + 0.5) / side, (row + 0.5) / side, scale * ratio, scale / ratio])
    return np.array(boxes, np.float32)


class FlattenConcat(nn.Cell):
    def __init__(self, num):
        super(FlattenConcat, self).__init__()
        self.num = num
        self.concat = P.Concat(axis=1)
        self.transpose = P.Transpose()

    def construct(self, inputs):
        output = ()
        batch_size = F.shape(inputs[0])[0]
        for x in inputs:
            x = self.transpose(x, (0, 2, 3, 1))
            output += (F.reshape(x, (batch_size, -1)),)
        res = self.concat(output)
        return F.reshape(res, (batch_size, self.num, -1))


class SSD(nn.Cell):
    def __init__(self):
        super(SSD, self).__init__()
        self.backbone = nn.SequentialCell([
            nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8, eps=1e-3, momentum=0.97), nn.ReLU6(),
            nn.Conv2d(8, 16, 3, 2), nn.BatchNorm2d(16, eps=1e-3, momentum=0.97), nn.ReLU6()])
        self.extra = nn.SequentialCell([nn.Conv2d(16, 16, 3, 2), nn.BatchNorm2d(16), nn.ReLU6()])
        self.loc = nn.CellList([nn.Conv2d(16, 4 * ANCHORS, 3, has_bias=True) for _ in range(2)])
        self.cls = nn.CellList([nn.Conv2d(16, CLASSES * ANCHORS, 3, has_bias=True) for _ in range(2)])
        self.flatten = FlattenConcat(160)

    def construct(self, x):
        first = self.backbone(x)
        features = (first, self.extra(first))
        loc_outputs, cls_outputs = (), ()
        for i in range(2):
            loc_outputs += (self.loc[i](features[i]),)
            cls_outputs += (self.cls[i](features[i]),)
        return self.flatten(loc_outputs), self.flatten(cls_outputs)


class SigmoidFocalLoss(nn.Cell):
    def __init__(self, gamma=2.0, alpha=0.75):
        super(SigmoidFocalLoss, self).__init__()
        self.sigmiod_cross_entropy = P.SigmoidCrossEntropyWithLogits()
        self.sigmoid = P.Sigmoid()
        self.pow = P.Pow()
        self.onehot = P.OneHot()
        self.on_value = Tensor(1.0, ms.float32)
        self.off_value = Tensor(0.0, ms.float32)
        self.gamma, self.alpha = gamma, alpha

    def construct(self, logits, label):
        label = self.onehot(label, F.shape(logits)[-1], self.on_value, self.off_value)
        sigmiod_cross_entropy = self.sigmiod_cross_entropy(logits, label)
        sigmoid = self.sigmoid(logits)
        label = F.cast(label, ms.float32)
        p_t = label * sigmoid + (1 - label) * (1 - sigmoid)
        modulating_factor = self.pow(1 - p_t, self.gamma)
        alpha_weight_factor = label * self.alpha + (1 - label) * (1 - self.alpha)
        return modulating_factor * alpha_weight_factor * sigmiod_cross_entropy


class SSDWithLossCell(nn.Cell):
    def __init__(self, network):
        super(SSDWithLossCell, self).__init__()
        self.network = network
        self.greater = P.Greater()
        self.tile = P.Tile()
        self.reduce_sum = P.ReduceSum()
        self.expand_dims = P.ExpandDims()
        self.class_loss = SigmoidFocalLoss()
        self.loc_loss = nn.SmoothL1Loss()

    def construct(self, x, gt_loc, gt_label, num_matched_boxes):
        pred_loc, pred_label = self.network(x)
        mask = F.cast(self.greater(gt_label, 0), ms.float32)
        num_matched_boxes = self.reduce_sum(F.cast(num_matched_boxes, ms.float32))
        mask_loc = self.tile(self.expand_dims(mask, -1), (1, 1, 4))
        smooth_l1 = self.loc_loss(pred_loc, gt_loc) * mask_loc
        loss_loc = self.reduce_sum(self.reduce_sum(smooth_l1, -1), -1)
        loss_cls = self.reduce_sum(self.class_loss(pred_label, gt_label), (1, 2))
        return self.reduce_sum((loss_cls + loss_loc) / num_matched_boxes)


class TrainingWrapper(nn.Cell):
    def __init__(self, network, optimizer, sens=1.0):
        super(TrainingWrapper, self).__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.weights = ms.ParameterTuple(network.trainable_params())
        self.optimizer = optimizer
        self.grad = C.GradOperation(get_by_list=True, sens_param=True)
        self.sens = sens

    def construct(self, *args):
        weights = self.weights
        loss = self.network(*args)
        sens = P.Fill()(P.DType()(loss), P.Shape()(loss), self.sens)
        grads = self.grad(self.network, weights)(*args, sens)
        grads = C.clip_by_global_norm(grads, clip_norm=10.0)
        self.optimizer(grads)
        return loss


random = np.random.RandomState(41)
default = anchors()
labels = (random.rand(2, 160) > 0.9) * random.randint(1, CLASSES, (2, 160))
images, boxes = Tensor(random.rand(2, 3, 32, 32), ms.float32), Tensor(random.normal(0, 0.5, (2, 160, 4)), ms.float32)
net = begin(SSD(), 2)
opt = nn.Momentum(filter(lambda x: x.requires_grad, net.get_parameters()), 0.01, 0.9, 1.5e-4, 2.0)
step = TrainingWrapper(SSDWithLossCell(net), opt, 2.0)
step.set_train()
arguments = images, boxes, Tensor(labels, ms.int32), Tensor((labels > 0).sum(1), ms.int32)
train(lambda: step(*arguments), net)

location, scores = (t.asnumpy() for t in net.set_train(False)(images))
centre = location[0, :, :2] * 0.1 * default[:, 2:] + default[:, :2]
size = np.exp(location[0, :, 2:] * 0.2) * default[:, 2:]
result = np.concatenate([centre - size / 2, centre + size / 2, scores[0, :, 1:2]], 1).astype(np.float32)
result = result[np.argsort(-result[:, 4], kind="stable")][:40]
kept, index, mask = P.NMSWithMask(0.45)(Tensor(result))
report(mask.asnumpy().sum(), kept.asnumpy()[mask.asnumpy()][:3])
