"""`mindspore.parallel.distributed`."""
from torchspore.mindspore.parallel.distributed.distributed_data_parallel import DistributedDataParallel
from torchspore.public_names import missing

__getattr__ = missing(__name__)
__all__ = ["DistributedDataParallel"]
