"""`mindspore.ops.composite`: MindSpore's path for functions over functions and over nested structures."""
from torchspore.mindspore.ops.gradients.gradient import GradOperation  # noqa: F401  MindSpore offers these names under this path
from torchspore.mindspore.ops.program.composite import (  # noqa: F401
    HyperMap,
    Map,
    MultitypeFuncGraph,
    add_flags,
    augassign_add,
    augassign_div,
    augassign_floordiv,
    augassign_mod,
    augassign_mul,
    augassign_sub,
    clip_by_global_norm,
    env_get,
    hyper_add,
    iter_converter,
    ms_hasnext,
    ms_next,
)
