"""BERT: pretraining with masked words and next sentences by a step of one's own with loss scaling, then fine-tuning a classifier (1.x zoo)."""
import math

import mindspore.common.dtype as mstype
import mindspore.nn as nn
import numpy as np
from mindspore import Tensor, context
from mindspore.common.initializer import TruncatedNormal, initializer
from mindspore.common.parameter import Parameter
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

from measured import MODE, begin, train

context.set_context(mode=MODE, device_target="CPU")
VOCAB, HIDDEN, HEADS, LAYERS, SEQ, PREDICTIONS = 30, 16, 2, 2, 8, 2
grad_scale = C.MultitypeFuncGraph("grad_scale")
reciprocal = P.Reciprocal()
clip_grad = C.MultitypeFuncGraph("clip_grad")


@grad_scale.register("Tensor", "Tensor")
def tensor_grad_scale(scale, grad):
    return grad * reciprocal(scale)


@clip_grad.register("Number", "Number", "Tensor")
def _clip_grad(clip_type, clip_value, grad):
    if clip_type not in (0, 1):
        return grad
    dt = F.dtype(grad)
    if clip_type == 0:
        return C.clip_by_value(grad, F.cast(F.tuple_to_array((-clip_value,)), dt), F.cast(F.tuple_to_array((clip_value,)), dt))
    return nn.ClipByNorm()(grad, F.cast(F.tuple_to_array((clip_value,)), dt))


class EmbeddingPostprocessor(nn.Cell):
    def __init__(self):
        super(EmbeddingPostprocessor, self).__init__()
        self.token_type_embedding = nn.Embedding(vocab_size=2, embedding_size=HIDDEN)
        self.full_position_embedding = nn.Embedding(vocab_size=SEQ, embedding_size=HIDDEN)
        self.layernorm = nn.LayerNorm((HIDDEN,))
        self.position_ids = Tensor(np.arange(SEQ).reshape(-1, SEQ).astype(np.int32))
        self.add = P.Add()

    def construct(self, token_type_ids, word_embeddings):
        output = self.add(word_embeddings, self.token_type_embedding(token_type_ids))
        position_embeddings = self.full_position_embedding(self.position_ids)
        return self.layernorm(self.add(output, position_embeddings))


class BertAttention(nn.Cell):
    def __init__(self):
        super(BertAttention, self).__init__()
        weight = TruncatedNormal(0.02)
        self.query_layer = nn.Dense(HIDDEN, HIDDEN, weight_init=weight)
        self.key_layer = nn.Dense(HIDDEN, HIDDEN, weight_init=weight)
        self.value_layer = nn.Dense(HIDDEN, HIDDEN, weight_init=weight)
        self.dense = nn.Dense(HIDDEN, HIDDEN, weight_init=weight)
        self.layernorm = nn.LayerNorm((HIDDEN,))
        self.shape_from = (-1, SEQ, HEADS, HIDDEN // HEADS)
        self.scores_mul = 1.0 / math.sqrt(float(HIDDEN // HEADS))
        self.reshape, self.transpose = P.Reshape(), P.Transpose()
        self.trans_shape = (0, 2, 1, 3)
        self.matmul_trans_b = P.BatchMatMul(transpose_b=True)
        self.matmul = P.BatchMatMul()
        self.softmax = nn.Softmax()
        self.multiply_data = -10000.0
        self.sub = P.Sub()
        self.expand_dims = P.ExpandDims()

    def construct(self, tensor, attention_mask):
        query = self.transpose(self.reshape(self.query_layer(tensor), self.shape_from), self.trans_shape)
        key = self.transpose(self.reshape(self.key_layer(tensor), self.shape_from), self.trans_shape)
        scores = self.matmul_trans_b(query, key) * self.scores_mul
        adder = self.sub(F.cast(F.tuple_to_array((1.0,)), mstype.float32), self.expand_dims(attention_mask, 1)) * self.multiply_data
        probs = self.softmax(scores + adder)
        value = self.transpose(self.reshape(self.value_layer(tensor), self.shape_from), self.trans_shape)
        layer = self.transpose(self.matmul(probs, value), self.trans_shape)
        layer = self.reshape(layer, (-1, SEQ, HIDDEN))
        return self.layernorm(self.dense(layer) + tensor)


class BertEncoderCell(nn.Cell):
    def __init__(self):
        super(BertEncoderCell, self).__init__()
        self.attention = BertAttention()
        self.intermediate = nn.Dense(HIDDEN, 4 * HIDDEN, activation="gelu", weight_init=TruncatedNormal(0.02))
        self.output = nn.Dense(4 * HIDDEN, HIDDEN)
        self.layernorm = nn.LayerNorm((HIDDEN,))

    def construct(self, hidden, mask):
        attention_output = self.attention(hidden, mask)
        return self.layernorm(self.output(self.intermediate(attention_output)) + attention_output)


class BertModel(nn.Cell):
    def __init__(self):
        super(BertModel, self).__init__()
        self.embedding_lookup = nn.Embedding(VOCAB, HIDDEN)
        self.postprocessor = EmbeddingPostprocessor()
        self.layers = nn.CellList([BertEncoderCell() for _ in range(LAYERS)])
        self.dense = nn.Dense(HIDDEN, HIDDEN, activation="tanh")
        self.squeeze_1 = P.Squeeze(axis=1)
        self.slice = P.StridedSlice()

    def construct(self, input_ids, token_type_ids, input_mask):
        tables = self.embedding_lookup.embedding_table
        hidden = self.postprocessor(token_type_ids, self.embedding_lookup(input_ids))
        mask = F.cast(P.Reshape()(input_mask, (-1, 1, SEQ)), mstype.float32) * P.Ones()((1, SEQ, 1), mstype.float32)
        for layer in self.layers:
            hidden = layer(hidden, mask)
        batch = P.Shape()(input_ids)[0]
        first = self.squeeze_1(self.slice(hidden, (0, 0, 0), (batch, 1, HIDDEN), (1, 1, 1)))
        return hidden, self.dense(first), tables


class GetMaskedLMOutput(nn.Cell):
    def __init__(self):
        super(GetMaskedLMOutput, self).__init__()
        self.dense = nn.Dense(HIDDEN, HIDDEN, activation=nn.get_activation("gelu")).to_float(mstype.float32)
        self.layernorm = nn.LayerNorm((HIDDEN,)).to_float(mstype.float32)
        self.output_bias = Parameter(initializer("zero", VOCAB))
        self.matmul = P.MatMul(transpose_b=True)
        self.log_softmax = nn.LogSoftmax(axis=-1)
        self.gather = P.Gather()
        self.rng = Tensor(np.array(range(0, 64)).astype(np.int32))

    def construct(self, input_tensor, output_weights, positions):
        batch, seq, width = P.Shape()(input_tensor)
        offsets = F.reshape(self.rng[:batch] * seq, (-1, 1))
        flat = F.reshape(positions + offsets, (-1,))
        sequence = self.gather(F.reshape(input_tensor, (-1, width)), flat, 0)
        logits = self.matmul(self.layernorm(self.dense(sequence)), output_weights) + self.output_bias
        return self.log_softmax(logits)


class BertPreTraining(nn.Cell):
    def __init__(self):
        super(BertPreTraining, self).__init__()
        self.bert = BertModel()
        self.cls1 = GetMaskedLMOutput()
        self.cls2 = nn.Dense(HIDDEN, 2)
        self.onehot = P.OneHot()
        self.on_value, self.off_value = Tensor(1.0, mstype.float32), Tensor(0.0, mstype.float32)
        self.reduce_sum = P.ReduceSum()
        self.reduce_mean = P.ReduceMean()
        self.neg = P.Neg()
        self.log_softmax = P.LogSoftmax(axis=-1)

    def construct(self, input_ids, input_mask, token_type_id, next_sentence_labels, positions, masked_ids, masked_weights):
        sequence, pooled, table = self.bert(input_ids, token_type_id, input_mask)
        prediction = self.cls1(sequence, table, positions)
        one_hot = self.onehot(F.reshape(masked_ids, (-1,)), VOCAB, self.on_value, self.off_value)
        per_example = self.neg(self.reduce_sum(prediction * one_hot, (-1,)))
        weights = F.reshape(masked_weights, (-1,))
        masked = self.reduce_sum(weights * per_example, (-1,)) / (self.reduce_sum(weights, (-1,)) + F.cast(F.tuple_to_array((1e-5,)), mstype.float32))
        labels = self.onehot(F.reshape(next_sentence_labels, (-1,)), 2, self.on_value, self.off_value)
        following = self.reduce_mean(self.neg(self.reduce_sum(self.log_softmax(self.cls2(pooled)) * labels, (-1,))))
        return self.reduce_mean(masked) + following


class BertTrainOneStep(nn.TrainOneStepCell):
    def __init__(self, network, optimizer, sens=1024.0):
        super(BertTrainOneStep, self).__init__(network, optimizer, sens)
        self.hyper_map = C.HyperMap()
        self.scale = Tensor(sens, mstype.float32)

    def set_sens(self, value):
        self.sens = value

    def construct(self, *inputs):
        loss = self.network(*inputs)
        grads = self.grad(self.network, self.weights)(*inputs, F.cast(F.tuple_to_array((self.sens,)), mstype.float32).reshape(loss.shape))
        grads = self.hyper_map(F.partial(grad_scale, self.scale), grads)
        grads = self.hyper_map(F.partial(clip_grad, 1, 1.0), grads)
        self.optimizer(grads)
        return loss


class BertCLS(nn.Cell):
    def __init__(self, bert):
        super(BertCLS, self).__init__()
        self.bert = bert
        self.dense_1 = nn.Dense(HIDDEN, 3)
        self.loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")

    def construct(self, input_ids, input_mask, token_type_id, label_ids):
        _, pooled, _ = self.bert(input_ids, token_type_id, input_mask)
        return self.loss(self.dense_1(pooled), label_ids)


random = np.random.RandomState(151)
ids = Tensor(random.randint(0, VOCAB, (3, SEQ)), mstype.int32)
mask = Tensor(np.array([[1] * 8, [1] * 6 + [0] * 2, [1] * 8]), mstype.int32)
kinds = Tensor(random.randint(0, 2, (3, SEQ)), mstype.int32)
following = Tensor(np.array([[0], [1], [1]]), mstype.int32)
positions = Tensor(random.randint(0, 6, (3, PREDICTIONS)), mstype.int32)
masked_ids = Tensor(random.randint(0, VOCAB, (3, PREDICTIONS)), mstype.int32)
masked_weights = Tensor(np.array([[1, 1], [1, 0], [1, 1]]), mstype.float32)
net = begin(BertPreTraining(), 3, 0.5)
groups = [{"params": [p for p in net.trainable_params() if "layernorm" not in p.name.lower() and "bias" not in p.name.lower()], "weight_decay": 0.01},
          {"params": [p for p in net.trainable_params() if "layernorm" in p.name.lower() or "bias" in p.name.lower()], "weight_decay": 0.0},
          {"order_params": net.trainable_params()}]
optimizer = nn.AdamWeightDecay(groups, learning_rate=1e-3, eps=1e-4)
step = BertTrainOneStep(net, optimizer)
step.set_train()
arguments = ids, mask, kinds, following, positions, masked_ids, masked_weights
train(lambda: step(*arguments), net)
classifier = BertCLS(net.bert)
begin(classifier.dense_1, 5)
tuned = nn.TrainOneStepCell(classifier, nn.AdamWeightDecay(classifier.trainable_params(), 1e-3, eps=1e-4))
tuned.set_train()
answers = Tensor(np.array([0, 2, 1]), mstype.int32)
train(lambda: tuned(ids, mask, kinds, answers), classifier)
