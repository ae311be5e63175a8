"""mindnlp 0.4.1: transformers of tiny sizes train some steps (forward, backward, AdamW) and generate."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

PACKAGE = "mindnlp==0.4.1"
NEEDS = (
    "tqdm", "pyyaml", "requests", "urllib3", "idna", "certifi", "charset-normalizer", "datasets==3.6.0", "evaluate==0.4.3",
    "huggingface_hub==0.36.0", "hf-xet", "pyarrow", "pandas", "python-dateutil", "pytz", "tzdata", "six", "dill", "multiprocess", "xxhash",
    "aiohttp", "aiosignal", "attrs", "frozenlist", "multidict", "yarl", "propcache", "aiohappyeyeballs", "tokenizers==0.19.1",
    "safetensors",
    "sentencepiece", "regex", "addict", "pyctcdecode", "pygtrie", "hypothesis", "sortedcontainers", "jieba", "pytest==7.2.0", "iniconfig",
    "pluggy", "ml-dtypes", "packaging", "setuptools<81", "fsspec", "filelock", "typing_extensions",
)
SMALL = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
GPT2 = {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64, "eos_token_id": 1, "bos_token_id": 1}
LLAMA = {**SMALL, "num_key_value_heads": 2}
T5 = {"vocab_size": 64, "d_model": 32, "num_layers": 2, "num_heads": 2, "d_ff": 64, "d_kv": 16, "decoder_start_token_id": 0}

MODELS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    # Class, its configuration, its sizes, and the kind of its labels.
    ("BertModel", "BertConfig", SMALL, ""),
    ("BertForMaskedLM", "BertConfig", SMALL, "tokens"),
    ("BertForPreTraining", "BertConfig", SMALL, "pretraining"),
    ("BertForSequenceClassification", "BertConfig", SMALL, "classes"),
    ("BertForTokenClassification", "BertConfig", {**SMALL, "num_labels": 3}, "token classes"),
    ("BertForQuestionAnswering", "BertConfig", SMALL, "spans"),
    ("BertForMultipleChoice", "BertConfig", SMALL, "choices"),
    ("BertForNextSentencePrediction", "BertConfig", SMALL, "classes"),
    ("BertLMHeadModel", "BertConfig", {**SMALL, "is_decoder": True}, "generates"),
    ("GPT2Model", "GPT2Config", GPT2, ""),
    ("GPT2LMHeadModel", "GPT2Config", GPT2, "generates"),
    ("GPT2ForSequenceClassification", "GPT2Config", {**GPT2, "pad_token_id": 0}, "classes"),
    ("GPT2ForTokenClassification", "GPT2Config", GPT2, "token classes"),
    ("LlamaModel", "LlamaConfig", LLAMA, ""),
    ("LlamaForCausalLM", "LlamaConfig", LLAMA, "generates"),
    ("LlamaForSequenceClassification", "LlamaConfig", {**LLAMA, "pad_token_id": 0}, "classes"),
    ("T5Model", "T5Config", T5, "both"),
    ("T5EncoderModel", "T5Config", T5, ""),
    ("T5ForConditionalGeneration", "T5Config", T5, "generates"),
    ("T5ForSequenceClassification", "T5Config", {**T5, "eos_token_id": 62}, "ends"),
)

Row = tuple[str, str, Callable[[], dict[str, Any] | None]]


def rows(options: dict[str, Any]) -> Iterator[Row]:
    """Yield (name, group, function to run) of each row."""
    del options
    import standins

    standins.install_stand_ins()
    for name, config, sizes, labels in MODELS:
        yield name, config.removesuffix("Config"), lambda n=name, c=config, s=sizes, k=labels: _model(n, c, s, k)  # type: ignore[misc]


def _inputs(kind: str) -> dict[str, Any]:
    import mindspore as ms
    import numpy as np

    drawn = np.random.RandomState(0)
    tokens = drawn.randint(3, 60, (2, 7))
    if kind == "ends":
        tokens[:, -1] = 62
    inputs: dict[str, Any] = {"input_ids": tokens}
    inputs |= {
        "tokens": {"labels": tokens}, "generates": {"labels": tokens}, "classes": {"labels": np.array([0, 1])},
        "ends": {"labels": np.array([0, 1])},
        "token classes": {"labels": tokens % 2}, "spans": {"start_positions": np.array([1, 2]), "end_positions": np.array([3, 4])},
        "choices": {"input_ids": tokens.reshape(1, 2, 7), "labels": np.array([1])}, "both": {"decoder_input_ids": tokens},
        "pretraining": {"labels": tokens, "next_sentence_label": np.array([0, 1])},
    }.get(kind, {})
    return {name: ms.Tensor(values, ms.int64) for name, values in inputs.items()}


def _model(name: str, config: str, sizes: dict[str, Any], kind: str) -> dict[str, Any] | None:
    """Train until the loss is lower, then check that five generated tokens are equal with and without the cache of keys."""
    import mindnlp.transformers as transformers  # type: ignore[import-not-found]
    import mindspore as ms
    import numpy as np
    from mindnlp.core import optim, value_and_grad  # type: ignore[import-not-found]

    ms.set_seed(1)
    model = getattr(transformers, name)(getattr(transformers, config)(**sizes))
    inputs = _inputs(kind)
    model.train()
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)

    def forward() -> Any:
        out = model(**inputs)
        return out.loss if getattr(out, "loss", None) is not None else (out[0] ** 2).mean()

    step = value_and_grad(forward, tuple(p for p in model.parameters() if p.requires_grad))
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        losses.append(float(step().asnumpy()))
        optimizer.step()
    if not losses[-1] < losses[0]:
        raise ValueError(f"the loss did not fall: {losses}")
    if kind != "generates":
        return None
    model.eval()
    tokens = [
        model.generate(inputs["input_ids"], max_new_tokens=5, do_sample=False, use_cache=is_cached).asnumpy() for is_cached in (True, False)
    ]
    if not np.array_equal(*tokens):
        raise ValueError(f"the cached keys change the generated tokens: {tokens[0].tolist()}, {tokens[1].tolist()}")
    return None
