"""Optimizers."""
from torchspore.mindspore.nn.optim.adafactor import AdaFactor
from torchspore.mindspore.nn.optim.adam import Adam, AdamOffload, AdamWeightDecay, LazyAdam
from torchspore.mindspore.nn.optim.adaptive import Adadelta, Adagrad, AdaMax, RMSProp
from torchspore.mindspore.nn.optim.adasum import AdaSumByDeltaWeightWrapCell, AdaSumByGradWrapCell
from torchspore.mindspore.nn.optim.layerwise import LARS, Lamb
from torchspore.mindspore.nn.optim.momentum import SGD, Momentum
from torchspore.mindspore.nn.optim.optimizer import Optimizer
from torchspore.mindspore.nn.optim.proximal import FTRL, ProximalAdagrad
from torchspore.mindspore.nn.optim.signs import ASGD, Rprop
from torchspore.mindspore.nn.optim.thor import thor

__all__ = [
    "ASGD", "AdaSumByDeltaWeightWrapCell", "AdaSumByGradWrapCell", "FTRL", "LARS", "SGD", "AdaFactor", "AdaMax", "Adadelta", "Adagrad",
    "Adam", "AdamOffload", "AdamWeightDecay", "Lamb",
    "LazyAdam", "Momentum", "Optimizer", "ProximalAdagrad", "RMSProp", "Rprop", "thor",
]
