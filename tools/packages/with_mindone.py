"""mindone 0.5.0: its modules import; a small UNet of Stable Diffusion, and BERT of its transformers part, train in both modes."""
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
    yield "BertForMaskedLM", "training", lambda: compare_modes(_bert_losses)


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


def _bert_losses(mode: int) -> list[float]:
    import mindspore as ms
    import numpy as np
    from mindone.transformers import BertForMaskedLM  # type: ignore[import-not-found]
    from mindspore import Tensor, nn
    from transformers import BertConfig

    ms.set_context(mode=mode)
    ms.set_seed(1)
    net = BertForMaskedLM(BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, attn_implementation="eager",
    ))

    class Loss(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def construct(self, tokens: Any) -> Any:
            return self.net(tokens, labels=tokens, return_dict=False)[0]

    tokens = Tensor(np.random.RandomState(0).randint(3, 60, (2, 7)).astype(np.int32))
    step = nn.TrainOneStepCell(Loss(), nn.AdamWeightDecay(net.trainable_params(), learning_rate=1e-2)).set_train()
    return train_three_steps(step, tokens)
