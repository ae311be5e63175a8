"""Optimizers."""
from torchspore.mindspore.nn.optim.adam import Adam, AdamWeightDecay, LazyAdam
from torchspore.mindspore.nn.optim.momentum import SGD, Momentum
from torchspore.mindspore.nn.optim.optimizer import Optimizer
from torchspore.mindspore.nn.optim.proximal import FTRL, ProximalAdagrad

__all__ = ["FTRL", "SGD", "Adam", "AdamWeightDecay", "LazyAdam", "Momentum", "Optimizer", "ProximalAdagrad"]
