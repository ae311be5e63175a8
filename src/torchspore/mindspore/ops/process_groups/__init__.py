"""Groups of processes and exchanges between them, which write into their arguments.

`mindspore.mint.distributed` and `mindspore.ops.communication` offer these functions; `comm_func` has the forms that return new Tensors.
"""
from torchspore.mindspore.ops.process_groups.exchange import (
    all_gather,
    all_gather_into_tensor,
    all_gather_into_tensor_uneven,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    reduce_scatter_tensor_uneven,
    scatter,
)
from torchspore.mindspore.ops.process_groups.groups import (
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_initialized,
    new_group,
)
from torchspore.mindspore.ops.process_groups.point_to_point import (
    P2POp,
    all_gather_object,
    batch_isend_irecv,
    broadcast_object_list,
    gather_object,
    irecv,
    isend,
    recv,
    recv_object_list,
    scatter_object_list,
    send,
    send_object_list,
)
from torchspore.mindspore.ops.process_groups.store import TCPStore
