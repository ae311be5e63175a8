"""mindformers 1.7.0: its modules import, and a small Llama trains in both modes."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import with_mindone
from module_imports import compare_modes, import_all, train_three_steps

PACKAGE = "mindformers==1.7.0"
NEEDS = (
    *with_mindone.NEEDS, "jieba", "rouge-chinese", "mindpet==1.0.4", "Deprecated", "wrapt", "astunparse", "setproctitle", "tensorboardX",
)
Row = tuple[str, str, Callable[[], dict[str, Any] | None]]


def rows(options: dict[str, Any]) -> Iterator[Row]:
    """Yield (name, group, function to run) of each row."""
    del options
    yield "every module", "imports", lambda: import_all("mindformers", ("mindspore_gs",))
    yield "LlamaForCausalLM", "training", lambda: compare_modes(llama_losses)


def llama_losses(mode: int) -> list[float]:
    """Return the losses of three training steps of a small Llama."""
    import mindspore as ms
    import numpy as np
    from mindformers.models.llama import LlamaConfig, LlamaForCausalLM  # type: ignore[import-not-found]
    from mindspore import Tensor, nn

    ms.set_context(mode=mode)
    ms.set_seed(1)
    types = dict.fromkeys(
        ("compute_dtype", "param_init_type", "layernorm_compute_type", "softmax_compute_type", "rotary_dtype"), "float32",
    )
    net = LlamaForCausalLM(LlamaConfig(
        batch_size=2, seq_length=16, hidden_size=32, num_layers=2, num_heads=4, vocab_size=100, multiple_of=16, use_flash_attention=False,
        use_past=False, pad_token_id=0, **types,
    ))
    tokens = Tensor(np.random.RandomState(0).randint(1, 100, (2, 17)).astype(np.int32))
    step = nn.TrainOneStepCell(net, nn.AdamWeightDecay(net.trainable_params(), learning_rate=1e-2)).set_train()
    return train_three_steps(step, tokens)
