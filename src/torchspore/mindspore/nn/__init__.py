"""`mindspore.nn`: Cells, layers, losses, optimizers."""
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.dynamic_lr import *
from torchspore.mindspore.nn.dynamic_lr import __all__ as _rates
from torchspore.mindspore.nn.grad import *
from torchspore.mindspore.nn.grad import __all__ as _products
from torchspore.mindspore.nn.graph_cell import GraphCell, GraphKernel
from torchspore.mindspore.nn.layer import *
from torchspore.mindspore.nn.layer import __all__ as _layers
from torchspore.mindspore.nn.learning_rate_schedule import *
from torchspore.mindspore.nn.learning_rate_schedule import __all__ as _schedules
from torchspore.mindspore.nn.loss import *
from torchspore.mindspore.nn.loss import __all__ as _losses
from torchspore.mindspore.nn.optim import *
from torchspore.mindspore.nn.optim import __all__ as _optimizers
from torchspore.mindspore.nn.sparse import *
from torchspore.mindspore.nn.sparse import __all__ as _sparse
from torchspore.mindspore.nn.utils import *
from torchspore.mindspore.nn.utils import __all__ as _utils
from torchspore.mindspore.nn.wrap import *
from torchspore.mindspore.nn.wrap import __all__ as _wrappers

__all__ = [
    *_layers, *_losses, *_optimizers, *_products, *_rates, *_schedules, *_sparse, *_utils, *_wrappers, "Cell", "GraphCell", "GraphKernel",
]
