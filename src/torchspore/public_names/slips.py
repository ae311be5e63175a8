"""Names in public programs that no MindSpore release has: misspelled ones whose meaning is clear, and names of torch.

The line fails on MindSpore. A misspelled name (SLIPS) runs here with one warning. A name of torch (OF_TORCH) raises an error whose hint
names MindSpore's way: torch's defaults differ (`nn.ConvTranspose2d`, `nn.init.kaiming_normal_`), so the program would compute other numbers
than its author expects.
"""
from __future__ import annotations

from torchspore.base.frames import warn
from torchspore.base.once import first_time
from torchspore.base.text import with_hint
from torchspore.translations import translate

SLIPS: dict[str, str] = {
    "mindspore.dataset.ImageFolder": "mindspore.dataset.ImageFolderDataset",
    **{f"mindspore.dataset.{name}": f"mindspore.dataset.Dataset.{name}" for name in (
        "batch", "create_dict_iterator", "create_tuple_iterator", "get_col_names", "get_dataset_size", "map", "output_shapes", "save",
        "shuffle",
    )},
    "mindspore.nn.BCEloss": "mindspore.nn.BCELoss",
    "mindspore.nn.Parameter": "mindspore.Parameter",
    "mindspore.nn.Relu": "mindspore.nn.ReLU",
    "mindspore.nn.Sequential": "mindspore.nn.SequentialCell",
    "mindspore.nn.sigmoid": "mindspore.ops.sigmoid",
    "mindspore.ops.Sum": "mindspore.ops.ReduceSum",
    **{f"mindspore.{name}": f"mindspore.ops.{name}" for name in ("bmm", "cat", "ones", "squeeze", "zeros")},
}
"""Written name -> intended name; from the names in public programs that no release has (docs/reference/coverage.md)."""

_INITIALIZER = "weight.set_data(initializer({}, weight.shape, weight.dtype)) with mindspore.common.initializer"
_TENSOR = "mindspore.Tensor(values, mindspore.{})"
OF_TORCH: dict[str, str] = {
    "mindspore.nn.init": _INITIALIZER.format("'xavier_uniform'"),
    "mindspore.nn.init.constant_": _INITIALIZER.format("0"),
    "mindspore.nn.init.kaiming_normal_": _INITIALIZER.format("HeNormal()"),
    "mindspore.nn.init.kaiming_uniform_": _INITIALIZER.format("HeUniform()"),
    "mindspore.nn.init.normal_": _INITIALIZER.format("Normal(1.0)"),
    "mindspore.nn.init.ones_": _INITIALIZER.format("'ones'"),
    "mindspore.nn.init.orthogonal_": _INITIALIZER.format("Orthogonal()"),
    "mindspore.nn.init.trunc_normal_": _INITIALIZER.format("TruncatedNormal(1.0)"),
    "mindspore.nn.init.uniform_": _INITIALIZER.format("Uniform()"),
    "mindspore.nn.init.xavier_normal_": _INITIALIZER.format("XavierNormal()"),
    "mindspore.nn.init.xavier_uniform_": _INITIALIZER.format("XavierUniform()"),
    "mindspore.nn.init.zeros_": _INITIALIZER.format("'zeros'"),
    "mindspore.no_grad": "the block without it: only mindspore.grad and mindspore.value_and_grad compute gradients, "
                         "and ops.stop_gradient excludes a value",
    "mindspore.nn.functional": "mindspore.ops, or mindspore.mint.nn.functional, which has torch's signatures",
    "mindspore.nn.AdamW": "mindspore.mint.optim.AdamW, or nn.AdamWeightDecay",
    "mindspore.nn.ConvTranspose2d": "nn.Conv2dTranspose with pad_mode='pad', or mindspore.mint.nn.ConvTranspose2d",
    "mindspore.nn.ConvTranspose3d": "nn.Conv3dTranspose with pad_mode='pad'",
    "mindspore.nn.DataParallel": "set_auto_parallel_context(parallel_mode='data_parallel') and one process for each device",
    "mindspore.nn.Module": "nn.Cell, whose method is construct",
    "mindspore.nn.UpsamplingBilinear2d": "nn.Upsample(scale_factor=..., mode='bilinear', align_corners=True)",
    "mindspore.nn.utils.clip_grad_norm": "ops.clip_by_global_norm(gradients, clip_norm)",
    "mindspore.nn.utils.clip_grad_norm_": "ops.clip_by_global_norm(gradients, clip_norm)",
    "mindspore.autograd": "mindspore.grad or mindspore.value_and_grad",
    "mindspore.cuda": "mindspore.set_context(device_target='GPU')",
    "mindspore.optim": "mindspore.nn for optimizers, mindspore.experimental.optim for torch's signatures",
    "mindspore.optim.lr_scheduler": "mindspore.experimental.optim.lr_scheduler",
    "mindspore.save": "mindspore.save_checkpoint(net, path)",
    "mindspore.FloatTensor": _TENSOR.format("float32"),
    "mindspore.LongTensor": _TENSOR.format("int64"),
}
"""Name of torch under mindspore -> what to write."""


def replacement(path: str) -> str | None:
    """Return what to write instead of a name of torch, or instead of the module that contains it; None for other names."""
    while path:
        if path in OF_TORCH:
            return OF_TORCH[path]
        path = path.rpartition(".")[0]
    return None


def text_for(path: str) -> str:
    """Return the warning for a misspelled name."""
    text = translate("{path}: no release of MindSpore has it; torchspore takes {target} for it, on MindSpore this line fails.")
    return text.format(path=path, target=SLIPS[path])


def warn_about(path: str) -> None:
    """Warn about a misspelled name at the user's line, once."""
    if first_time(("slip", path)):
        warn(with_hint(text_for(path), translate("write {word}").format(word=SLIPS[path])))
