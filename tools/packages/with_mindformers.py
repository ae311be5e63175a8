"""mindformers 1.7.0: its modules import; a small Llama and GLM train in both modes and generate; Qwen3 and DeepSeek-V3 train.

The latter two are of mindformers' newer models, whose training uses `Morph`, which only Graph mode has.
"""
from __future__ import annotations

import importlib
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
    yield "ChatGLM2ForConditionalGeneration", "training", lambda: compare_modes(glm_losses)
    yield "Llama's tokens", "generation", lambda: compare_tokens(llama_tokens)
    yield "GLM's tokens", "generation", lambda: compare_tokens(glm_tokens)
    for name in _NEWER:
        yield name, "training", lambda name=name: _newer_losses(name)  # type: ignore[misc]


def _types(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "float32")


def compare_tokens(generate: Callable[[], list[list[int]]]) -> dict[str, Any]:
    """Generate greedily in both modes. Return the tokens as the row's remark. Raises ValueError if they differ."""
    import mindspore as ms

    tokens: list[list[int]] = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        tokens += generate()
    if any(row != tokens[0] for row in tokens):
        raise ValueError(f"the tokens differ: {tokens}")
    return {"told": f"equal tokens in both modes: {' '.join(map(str, tokens[0]))}"}


def _generated(net: Any) -> list[int]:
    import numpy as np

    net.set_train(False)
    prompts = np.random.RandomState(0).randint(1, 100, (2, 17)).astype(np.int32)[:, :5]
    return [int(token) for token in np.asarray(net.generate(prompts, max_length=12, do_sample=False, eos_token_id=[-1])).reshape(-1)]


def _llama(**options: Any) -> Any:
    import mindspore as ms
    from mindformers.models.llama import LlamaConfig, LlamaForCausalLM  # type: ignore[import-not-found]

    ms.set_seed(1)
    types = _types("compute_dtype", "param_init_type", "layernorm_compute_type", "softmax_compute_type", "rotary_dtype")
    return LlamaForCausalLM(LlamaConfig(
        batch_size=2, seq_length=16, hidden_size=32, num_layers=2, num_heads=4, vocab_size=100, multiple_of=16, pad_token_id=0, **types,
        **options,
    ))


def _glm() -> Any:
    import mindspore as ms
    from mindformers.models.glm2 import ChatGLM2Config, ChatGLM2ForConditionalGeneration  # type: ignore[import-not-found]

    ms.set_seed(1)
    types = _types("compute_dtype", "param_init_type", "layernorm_compute_type", "softmax_compute_type", "rotary_dtype")
    return ChatGLM2ForConditionalGeneration(ChatGLM2Config(
        batch_size=2, seq_length=16, hidden_size=32, num_layers=2, num_attention_heads=4, padded_vocab_size=100, ffn_hidden_size=64,
        kv_channels=8, multi_query_attention=True, multi_query_group_num=2, pad_token_id=0, eos_token_id=2, use_past=False,
        use_flash_attention=False, hidden_dropout=0.0, attention_dropout=0.0, max_length=16, **types,
    ))


def llama_tokens() -> list[list[int]]:
    """Return the tokens that a small Llama generates without and with a cache of keys, which attention reads in blocks."""
    cached = {"use_past": True, "use_flash_attention": True, "block_size": 16, "num_blocks": 8, "max_decode_length": 16}
    return [_generated(_llama(**options)) for options in ({"use_past": False, "use_flash_attention": False}, cached)]


def glm_tokens() -> list[list[int]]:
    """Return the tokens that a small GLM generates."""
    return [_generated(_glm())]


def llama_losses(mode: int) -> list[float]:
    """Return the losses of three training steps of a small Llama."""
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, nn

    ms.set_context(mode=mode)
    net = _llama(use_past=False, use_flash_attention=False)
    tokens = Tensor(np.random.RandomState(0).randint(1, 100, (2, 17)).astype(np.int32))
    step = nn.TrainOneStepCell(net, nn.AdamWeightDecay(net.trainable_params(), learning_rate=1e-2)).set_train()
    return train_three_steps(step, tokens)


def glm_losses(mode: int) -> list[float]:
    """Return the losses of three training steps of a small GLM."""
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, nn

    ms.set_context(mode=mode)
    net = _glm()
    tokens = np.random.RandomState(0).randint(1, 100, (2, 17)).astype(np.int32)
    step = nn.TrainOneStepCell(net, nn.AdamWeightDecay(net.trainable_params(), learning_rate=1e-2)).set_train()
    return train_three_steps(step, Tensor(tokens[:, :16]), Tensor(tokens[:, 1:]))


_SIZES = {
    "vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "seq_length": 16,
    "max_position_embeddings": 16, "use_flash_attention": True, "pad_token_id": 0,
}
_EXPERTS = {"moe_intermediate_size": 32, "num_experts_per_tok": 2, "moe_grouped_gemm": True}
_QWEN = {**_SIZES, "num_key_value_heads": 2, "head_dim": 8}
_NEWER: dict[str, tuple[str, dict[str, Any]]] = {
    "Qwen3ForCausalLM": ("qwen3", _QWEN),
    "Qwen3MoeForCausalLM": ("qwen3_moe", {**_QWEN, **_EXPERTS, "num_experts": 4, "moe_router_topk_scaling_factor": 1.0}),
    "DeepseekV3ForCausalLM": ("deepseek3", {
        **_SIZES, **_EXPERTS, "num_key_value_heads": 4, "n_routed_experts": 4, "n_shared_experts": 1, "n_group": 2, "topk_group": 1,
        "kv_lora_rank": 16, "q_lora_rank": 24, "qk_rope_head_dim": 8, "v_head_dim": 16, "qk_nope_head_dim": 16, "first_k_dense_replace": 1,
        "num_nextn_predict_layers": 1, "mtp_loss_scaling_factor": 0.3,
    }),
}
"""Of each newer model its package and its sizes. DeepSeek's experts are routed in groups; it also predicts the token after the next one."""


def _newer_losses(name: str) -> dict[str, Any]:
    """Return the losses of three training steps of a small model. mindformers' context selects its newer models and STRICT."""
    import mindspore as ms
    import numpy as np
    from mindformers.core.context.build_context import build_context  # type: ignore[import-not-found]
    from mindspore import Tensor, nn

    build_context({"use_legacy": False, "run_mode": "train", "use_parallel": False, "context": {"mode": ms.GRAPH_MODE}, "parallel": {}})
    ms.set_seed(1)
    folder, sizes = _NEWER[name]
    package = importlib.import_module(f"mindformers.models.{folder}")
    types = dict.fromkeys(("compute_dtype", "params_dtype", "layernorm_compute_dtype", "softmax_compute_dtype", "rotary_dtype"), "fp32")
    net = getattr(package, name)(getattr(package, name.replace("ForCausalLM", "Config"))(**sizes, **types))

    class Loss(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def construct(self, tokens: Any, labels: Any) -> Any:
            losses = self.net(tokens, labels=labels)
            return losses[0] + losses[1] + losses[2]

    tokens = np.random.RandomState(0).randint(1, 100, (2, 17)).astype(np.int32)
    step = nn.TrainOneStepCell(Loss(), nn.AdamWeightDecay(net.trainable_params(), learning_rate=1e-2)).set_train()
    losses = train_three_steps(step, Tensor(tokens[:, :16]), Tensor(tokens[:, 1:]))
    return {"told": f"losses in Graph mode: {', '.join(f'{loss:.6f}' for loss in losses)}"}
