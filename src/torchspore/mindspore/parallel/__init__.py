"""`mindspore.parallel`: strategies, layouts, and what programs ask of the parallel context."""
from typing import Any

from torchspore.mindspore.parallel import _auto_parallel_context, _utils, algo_parameter_config
from torchspore.mindspore.parallel.algo_parameter_config import get_algo_parameters, reset_algo_parameters, set_algo_parameters
from torchspore.names import missing

_elsewhere = missing(__name__)


def __getattr__(name: str) -> Any:
    """The function `shard`, which has the name of a module; other names where they live."""
    if name == "shard":
        from torchspore.mindspore.parallel._shard import shard

        return shard
    return _elsewhere(name)

