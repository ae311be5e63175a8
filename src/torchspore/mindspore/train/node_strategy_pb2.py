"""The messages of strategy and group files, for programs that read or write such files directly."""
from __future__ import annotations

from typing import Any

from torchspore.base.messages import messages
from torchspore.public_names import missing

__all__ = [
    "DevMatrix", "IndicesOffset", "ParallelGroupItem", "ParallelGroupMap", "ParallelGroupRanks", "ParallelLayoutItem", "ParallelLayouts",
    "ParallelStrategy", "ParallelStrategyItem", "ParallelStrategyMap", "ParallelStrategys", "ParamSplitShape", "TensorMap",
]
_DIMS = "1 dim int64*"
_classes = messages("node_strategy", {
    "ParallelStrategy": _DIMS, "DevMatrix": _DIMS, "TensorMap": _DIMS, "ParamSplitShape": _DIMS, "IndicesOffset": _DIMS,
    "ParallelGroupRanks": _DIMS,
    "ParallelStrategys": "1 stage int64, 2 parallel_strategy ParallelStrategy*",
    "ParallelStrategyItem": "1 node_name string, 2 parallel_strategys ParallelStrategys",
    "ParallelLayouts": "1 dev_matrix DevMatrix*, 2 tensor_map TensorMap*, 3 param_split_shape ParamSplitShape*, "
                       "4 indices_offset IndicesOffset*, 5 field int32, 6 opt_weight_shard_step int32, 7 opt_weight_shard_size int32",
    "ParallelLayoutItem": "1 param_name string, 2 parallel_layouts ParallelLayouts",
    "ParallelGroupItem": "1 group_name string, 2 parallel_group_ranks ParallelGroupRanks",
    "ParallelGroupMap": "1 parallel_group_item ParallelGroupItem*, 2 ckpt_restore_rank_list ParallelGroupRanks",
    "ParallelStrategyMap": "1 current_stage int64, 2 parallel_strategy_item ParallelStrategyItem*, "
                           "3 parallel_layout_item ParallelLayoutItem*",
})
DevMatrix: Any = _classes["DevMatrix"]
IndicesOffset: Any = _classes["IndicesOffset"]
ParallelGroupItem: Any = _classes["ParallelGroupItem"]
ParallelGroupMap: Any = _classes["ParallelGroupMap"]
ParallelGroupRanks: Any = _classes["ParallelGroupRanks"]
ParallelLayoutItem: Any = _classes["ParallelLayoutItem"]
ParallelLayouts: Any = _classes["ParallelLayouts"]
ParallelStrategy: Any = _classes["ParallelStrategy"]
ParallelStrategyItem: Any = _classes["ParallelStrategyItem"]
ParallelStrategyMap: Any = _classes["ParallelStrategyMap"]
ParallelStrategys: Any = _classes["ParallelStrategys"]
ParamSplitShape: Any = _classes["ParamSplitShape"]
TensorMap: Any = _classes["TensorMap"]
__getattr__ = missing(__name__)
