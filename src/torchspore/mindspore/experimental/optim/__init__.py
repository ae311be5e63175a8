"""`mindspore.experimental.optim`: optimizers with groups of options, as in PyTorch, and schedulers that change their rates."""
from torchspore.mindspore.experimental.optim import lr_scheduler
from torchspore.mindspore.experimental.optim.adam import Adam, AdamW, NAdam, RAdam
from torchspore.mindspore.experimental.optim.adaptive import ASGD, Adadelta, Adagrad, Adamax, RMSprop, Rprop
from torchspore.mindspore.experimental.optim.optimizer import Optimizer
from torchspore.mindspore.experimental.optim.sgd import SGD

__all__ = [
    "ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD", "lr_scheduler",
]
