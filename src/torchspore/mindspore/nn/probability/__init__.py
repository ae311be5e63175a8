"""`mindspore.nn.probability`: distributions, bijectors, and layers with random weights."""
from torchspore.mindspore.nn.probability import bijector, bnn_layers, distribution

__all__ = ["bijector", "bnn_layers", "distribution"]
