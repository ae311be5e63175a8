"""`mindspore.nn.probability`: distributions, functions that make distributions of others, and layers that draw their weights."""
from torchspore.mindspore.nn.probability import bijector, bnn_layers, distribution

__all__ = ["bijector", "bnn_layers", "distribution"]
