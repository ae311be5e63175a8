"""The transformer library of MindSpore 1.x (`mindspore.nn.transformer`, later `mindspore.parallel._transformer`), for one process."""
from torchspore.mindspore.parallel._transformer.blocks import (
    AttentionMask,
    EmbeddingOpParallelConfig,
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
    VocabEmbedding,
)
from torchspore.mindspore.parallel._transformer.loss import CrossEntropyLoss
from torchspore.mindspore.parallel._transformer.moe import MoE, MoEConfig
from torchspore.mindspore.parallel._transformer.op_parallel_config import MoEParallelConfig, OpParallelConfig
from torchspore.mindspore.parallel._transformer.transformer import (
    FeedForward,
    MultiHeadAttention,
    TransformerOpParallelConfig,
    TransformerRecomputeConfig,
)

__all__ = [
    "AttentionMask", "CrossEntropyLoss", "EmbeddingOpParallelConfig", "FeedForward", "MoE", "MoEConfig", "MoEParallelConfig",
    "MultiHeadAttention", "OpParallelConfig", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer", "TransformerOpParallelConfig", "TransformerRecomputeConfig", "VocabEmbedding",
]
