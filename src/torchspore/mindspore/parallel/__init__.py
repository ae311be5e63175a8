"""`mindspore.parallel`: strategies, layouts, and queries of the parallel context."""
from torchspore.mindspore.parallel import _auto_parallel_context, _utils, algo_parameter_config
from torchspore.mindspore.parallel.algo_parameter_config import get_algo_parameters, reset_algo_parameters, set_algo_parameters
from torchspore.public_names import missing

__getattr__ = missing(__name__)      # imported here and not on demand, because internal code may import it first
