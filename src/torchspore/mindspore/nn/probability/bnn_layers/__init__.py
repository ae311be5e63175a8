"""`mindspore.nn.probability.bnn_layers`: layers that draw their weights in each call."""
from torchspore.mindspore.nn.probability.bnn_layers.bnn_cell_wrapper import WithBNNLossCell
from torchspore.mindspore.nn.probability.bnn_layers.conv_variational import ConvReparam
from torchspore.mindspore.nn.probability.bnn_layers.dense_variational import DenseLocalReparam, DenseReparam
from torchspore.mindspore.nn.probability.bnn_layers.layer_distribution import NormalPosterior, NormalPrior, normal_post_fn
from torchspore.public_names import missing

__all__ = ["ConvReparam", "DenseLocalReparam", "DenseReparam", "NormalPosterior", "NormalPrior", "WithBNNLossCell", "normal_post_fn"]
__getattr__ = missing(__name__)
