"""mindone 0.5.0: its modules import; a UNet and a VAE of Stable Diffusion, BERT and Llama, all small, train in both modes."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from module_imports import compare_modes, import_all, train_three_steps

PACKAGE = "mindone==0.5.0"
NEEDS = (
    "transformers==4.57.1", "tokenizers==0.22.2", "huggingface_hub==0.36.2", "hf-xet", "safetensors", "regex", "requests", "certifi",
    "charset-normalizer", "idna", "urllib3", "filelock", "packaging", "tqdm", "fsspec", "psutil", "omegaconf==2.4.0", "pyyaml",
    "trampoline", "mindcv==0.3.0", "ftfy", "wcwidth", "sentencepiece", "einops", "ImageIO", "pandas", "python-dateutil", "six",
    "tzdata", "nltk", "joblib", "better-profanity", "tiktoken", "pyarrow", "datasets==4.0.0", "dill", "multiprocess", "xxhash", "httpx",
    "httpcore", "anyio", "h11", "av", "decord", "matplotlib", "contourpy", "cycler", "fonttools", "kiwisolver", "pyparsing",
    "soundfile", "aiohttp", "attrs", "yarl", "multidict", "propcache", "frozenlist", "aiosignal", "aiohappyeyeballs",
)
Row = tuple[str, str, Callable[[], dict[str, Any] | None]]


def rows(options: dict[str, Any]) -> Iterator[Row]:
    """Yield (name, group, function to run) of each row."""
    del options
    yield "every module", "imports", lambda: import_all("mindone", ("insightface is not available",))
    yield "UNet2DConditionModel", "training", lambda: compare_modes(_unet_losses)
    yield "AutoencoderKL", "training", lambda: compare_modes(_vae_losses)
    yield "BertForMaskedLM", "training", lambda: compare_modes(_bert_losses)
    yield "LlamaForCausalLM", "training", lambda: compare_modes(_llama_losses)


def _unet_losses(mode: int) -> list[float]:
    import mindspore as ms
    import numpy as np
    from mindone.diffusers import UNet2DConditionModel  # type: ignore[import-not-found]
    from mindspore import Tensor, nn, ops

    ms.set_context(mode=mode)
    ms.set_seed(1)
    net = UNet2DConditionModel(
        sample_size=8, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(32, 64), cross_attention_dim=32,
        attention_head_dim=8, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )

    class Loss(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def construct(self, noisy: Any, time: Any, text: Any, noise: Any) -> Any:
            return ops.mse_loss(self.net(noisy, time, text, return_dict=False)[0], noise)

    draw = np.random.RandomState(0)
    noisy, noise = (Tensor(draw.randn(2, 4, 8, 8).astype(np.float32)) for _ in range(2))
    text = Tensor(draw.randn(2, 6, 32).astype(np.float32))
    step = nn.TrainOneStepCell(Loss(), nn.AdamWeightDecay(net.trainable_params(), learning_rate=1e-3)).set_train()
    return train_three_steps(step, noisy, Tensor([3, 7], ms.int32), text, noise)


def _vae_losses(mode: int) -> list[float]:
    import mindspore as ms
    import numpy as np
    from mindone.diffusers import AutoencoderKL
    from mindspore import Tensor, nn, ops

    ms.set_context(mode=mode)
    ms.set_seed(1)
    net = AutoencoderKL(
        block_out_channels=(16, 32), down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4, layers_per_block=1, norm_num_groups=8, sample_size=16,
    )

    class Loss(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def construct(self, image: Any) -> Any:
            mean, log_variance = self.net.encode(image, return_dict=False)[0].chunk(2, axis=1)
            divergence = (mean ** 2 + ops.exp(log_variance) - 1 - log_variance).mean() / 2
            return ops.mse_loss(self.net.decode(mean, return_dict=False)[0], image) + 1e-3 * divergence

    image = Tensor(np.random.RandomState(0).randn(2, 3, 16, 16).astype(np.float32))
    step = nn.TrainOneStepCell(Loss(), nn.AdamWeightDecay(net.trainable_params(), learning_rate=1e-3)).set_train()
    return train_three_steps(step, image)


def _bert_losses(mode: int) -> list[float]:
    from mindone.transformers import BertForMaskedLM  # type: ignore[import-not-found]
    from transformers import BertConfig

    return _language_model_losses(mode, lambda: BertForMaskedLM(BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, attn_implementation="eager",
    )), 1e-2)


def _llama_losses(mode: int) -> list[float]:
    from mindone.transformers import LlamaForCausalLM
    from transformers import LlamaConfig

    return _language_model_losses(mode, lambda: LlamaForCausalLM(LlamaConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64,
        use_cache=False, attn_implementation="eager",
    )), 1e-3)


def _language_model_losses(mode: int, create: Callable[[], Any], rate: float) -> list[float]:
    """Return the losses of three training steps on the same tokens."""
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, nn

    ms.set_context(mode=mode)
    ms.set_seed(1)
    net = create()

    class Loss(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def construct(self, tokens: Any) -> Any:
            return self.net(tokens, labels=tokens, return_dict=False)[0]

    tokens = Tensor(np.random.RandomState(0).randint(3, 60, (2, 7)).astype(np.int32))
    step = nn.TrainOneStepCell(Loss(), nn.AdamWeightDecay(net.trainable_params(), learning_rate=rate)).set_train()
    return train_three_steps(step, tokens)
