"""Layers."""
from torchspore.mindspore.nn.layer.activation import *
from torchspore.mindspore.nn.layer.activation import __all__ as _activation
from torchspore.mindspore.nn.layer.basic import *
from torchspore.mindspore.nn.layer.basic import __all__ as _basic
from torchspore.mindspore.nn.layer.combined import *
from torchspore.mindspore.nn.layer.combined import __all__ as _combined
from torchspore.mindspore.nn.layer.container import *
from torchspore.mindspore.nn.layer.container import __all__ as _container
from torchspore.mindspore.nn.layer.conv import *
from torchspore.mindspore.nn.layer.conv import __all__ as _conv
from torchspore.mindspore.nn.layer.embedding import *
from torchspore.mindspore.nn.layer.embedding import __all__ as _embedding
from torchspore.mindspore.nn.layer.image import *
from torchspore.mindspore.nn.layer.image import __all__ as _image
from torchspore.mindspore.nn.layer.math import *
from torchspore.mindspore.nn.layer.math import __all__ as _math
from torchspore.mindspore.nn.layer.more_pooling import *
from torchspore.mindspore.nn.layer.more_pooling import __all__ as _more_pooling
from torchspore.mindspore.nn.layer.normalization import *
from torchspore.mindspore.nn.layer.normalization import __all__ as _normalization
from torchspore.mindspore.nn.layer.padding import *
from torchspore.mindspore.nn.layer.padding import __all__ as _padding
from torchspore.mindspore.nn.layer.pooling import *
from torchspore.mindspore.nn.layer.pooling import __all__ as _pooling
from torchspore.mindspore.nn.layer.quant import FakeQuantWithMinMaxObserver
from torchspore.mindspore.nn.layer.rnns import *
from torchspore.mindspore.nn.layer.rnns import __all__ as _rnns
from torchspore.mindspore.nn.layer.small import *
from torchspore.mindspore.nn.layer.small import __all__ as _small
from torchspore.mindspore.nn.layer.thor_layer import Conv2dThor, DenseThor, EmbeddingLookupThor, EmbeddingThor
from torchspore.mindspore.nn.layer.transformer import *
from torchspore.mindspore.nn.layer.transformer import __all__ as _transformer

__all__ = [
    *_activation, *_basic, *_combined, *_container, *_conv, *_embedding, *_image, *_math,
    *_more_pooling, *_normalization, *_padding, *_pooling, *_rnns, *_small, *_transformer,
    "Conv2dThor", "DenseThor", "EmbeddingLookupThor", "EmbeddingThor", "FakeQuantWithMinMaxObserver",
]
