"""Optimizers."""
from torchspore.mindspore.nn.optim.adam import Adam, AdamWeightDecay
from torchspore.mindspore.nn.optim.momentum import SGD, Momentum
from torchspore.mindspore.nn.optim.optimizer import Optimizer

__all__ = ["SGD", "Adam", "AdamWeightDecay", "Momentum", "Optimizer"]
