"""The transformer library of MindSpore 1.x (`mindspore.nn.transformer`, later `mindspore.parallel._transformer`), for one process."""
from torchspore.mindspore.parallel._transformer.moe import MoE, MoEConfig
from torchspore.mindspore.parallel._transformer.op_parallel_config import MoEParallelConfig, OpParallelConfig
from torchspore.mindspore.parallel._transformer.transformer import (
    FeedForward,
    MultiHeadAttention,
    TransformerOpParallelConfig,
    TransformerRecomputeConfig,
)

__all__ = [
    "FeedForward", "MoE", "MoEConfig", "MoEParallelConfig", "MultiHeadAttention", "OpParallelConfig", "TransformerOpParallelConfig",
    "TransformerRecomputeConfig",
]
