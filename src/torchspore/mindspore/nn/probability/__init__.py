"""`mindspore.nn.probability`: distributions, and functions that make distributions of others."""
from torchspore.mindspore.nn.probability import bijector, distribution

__all__ = ["bijector", "distribution"]
