"""mindformers 1.3.2: its modules import, and a small Llama and GLM train in both modes and generate."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import with_mindformers
from module_imports import compare_modes, import_all

PACKAGE = "mindformers==1.3.2"
FOLDER = "mindformers"
NEEDS = (
    "sentencepiece", "ftfy", "wcwidth", "regex", "tqdm", "jieba", "rouge-chinese", "nltk", "mindpet==1.0.4", "opencv-python-headless<5",
    "tokenizers==0.15.2", "astunparse", "wheel", "datasets==2.18.0", "pyarrow", "pyarrow-hotfix", "tiktoken", "setproctitle", "safetensors",
    "psutil", "pandas", "python-dateutil", "pytz", "tzdata", "six", "dill", "multiprocess", "xxhash", "aiohttp", "aiosignal", "attrs",
    "frozenlist", "multidict", "yarl", "propcache", "aiohappyeyeballs", "huggingface_hub==0.36.2", "hf-xet", "requests", "fsspec",
    "packaging",
)
Row = tuple[str, str, Callable[[], dict[str, Any] | None]]


def rows(options: dict[str, Any]) -> Iterator[Row]:
    """Yield (name, group, function to run) of each row."""
    del options
    yield "every module", "imports", lambda: import_all("mindformers", ("mindspore_gs",))
    yield "LlamaForCausalLM", "training", lambda: compare_modes(with_mindformers.llama_losses)
    yield "ChatGLM2ForConditionalGeneration", "training", lambda: compare_modes(with_mindformers.glm_losses)
    yield "Llama's tokens", "generation", lambda: with_mindformers.compare_tokens(with_mindformers.llama_tokens)
    yield "GLM's tokens", "generation", lambda: with_mindformers.compare_tokens(with_mindformers.glm_tokens)
