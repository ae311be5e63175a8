"""`mindspore.communication.comm_func`: exchanges between processes as functions that return their results. Ranks are global."""
from torchspore.mindspore.ops.process_groups.comm_func import (  # noqa: F401  MindSpore offers them under this path
    CommHandle,
    all_gather_into_tensor,
    all_reduce,
    all_to_all_single_with_output_shape,
    all_to_all_with_output_shape,
    barrier,
    broadcast,
    gather_into_tensor,
    irecv,
    isend,
    recv,
    reduce,
    reduce_scatter_tensor,
    scatter_tensor,
    send,
)
from torchspore.mindspore.ops.process_groups.exchange import all_to_all_v_c  # noqa: F401
from torchspore.mindspore.ops.process_groups.point_to_point import P2POp, batch_isend_irecv  # noqa: F401
