"""`mindspore.communication.management`: the processes of a program, and groups of them."""
from torchspore.mindspore.common.process_groups import (
    HCCL_WORLD_COMM_GROUP as HCCL_WORLD_COMM_GROUP,
)
from torchspore.mindspore.common.process_groups import (
    MCCL_WORLD_COMM_GROUP as MCCL_WORLD_COMM_GROUP,
)
from torchspore.mindspore.common.process_groups import (
    NCCL_WORLD_COMM_GROUP as NCCL_WORLD_COMM_GROUP,
)
from torchspore.mindspore.common.process_groups import (
    GlobalComm as GlobalComm,
)
from torchspore.mindspore.common.process_groups import (
    begin as begin,
)
from torchspore.mindspore.common.process_groups import (
    create_group as create_group,
)
from torchspore.mindspore.common.process_groups import (
    destroy_group as destroy_group,
)
from torchspore.mindspore.common.process_groups import (
    find_group as find_group,
)
from torchspore.mindspore.common.process_groups import (
    get_comm_name as get_comm_name,
)
from torchspore.mindspore.common.process_groups import (
    get_group_rank_from_world_rank as get_group_rank_from_world_rank,
)
from torchspore.mindspore.common.process_groups import (
    get_group_size as get_group_size,
)
from torchspore.mindspore.common.process_groups import (
    get_local_rank as get_local_rank,
)
from torchspore.mindspore.common.process_groups import (
    get_local_rank_size as get_local_rank_size,
)
from torchspore.mindspore.common.process_groups import (
    get_process_group_ranks as get_process_group_ranks,
)
from torchspore.mindspore.common.process_groups import (
    get_rank as get_rank,
)
from torchspore.mindspore.common.process_groups import (
    get_world_rank_from_group_rank as get_world_rank_from_group_rank,
)
from torchspore.mindspore.common.process_groups import (
    init as init,
)
from torchspore.mindspore.common.process_groups import (
    release as release,
)
