"""The names and layouts under which mindformers stores Llama, GPT-2, BERT and T5, and their counterparts in Hugging Face's transformers.

Sources: `mindformers/models/{llama,gpt2,bert,t5}/convert_weight.py` and `mindformers/utils/convert_utils.py` of
https://github.com/mindspore-lab/mindformers, versions 1.0.2 (GPT-2, BERT, T5), 1.2.0 (Llama, `plain` joins) and 1.5.0 (`grouped` joins),
and the state_dicts of transformers 5. mindnlp stores these models under the names of transformers; its releases before 0.4 use `gamma`,
`beta` and `embedding_table` (`mindnlp/transformers/modeling_utils.py`), and its `Conv1D` is (in, out), as in transformers. Names alone
pair these.
"""
from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from torchspore.base.text import message, with_hint
from torchspore.torch_modules.weights.slots import Link, Slot, rows_of

FUSED = ("plain", "grouped")
ROTARY = ("half", "interleaved")
_LEAVES = {"gamma": "weight", "beta": "bias", "embedding_table": "weight", "embedding_weight": "weight", "embeddings_table": "weight"}


class Layers(NamedTuple):
    """Layers of both sides whose tensors, one after the other, are equal. `#` is a number; a name with / in front has no prefix.

    `is_in_out` tells that MindSpore stores the matrices as (in, out). `joins` is the kind of rows that mindformers 1.5 groups by heads.
    """

    mindspore: tuple[str, ...]
    torch: tuple[str, ...]
    is_in_out: bool = False
    joins: str = ""


class Family(NamedTuple):
    """A kind of model: the prefix of MindSpore's names, the layers, and the roots of both sides by which it is recognized."""

    name: str
    prefix: str
    layers: tuple[Layers, ...]


class Choices(NamedTuple):
    """The layouts that a file does not tell: of joined rows, of rotary embeddings; the numbers of heads (queries, keys)."""

    fused: str | None = None
    rotary: str = "half"
    heads: tuple[int, int] | None = None


def _pair(mindspore: str, torch: str, is_in_out: bool = False) -> Layers:
    return Layers((mindspore,), (torch,), is_in_out)


def _attention(block: str, names: Iterable[str], torch: str) -> tuple[Layers, ...]:
    """Return the layers of the attention of mindformers' Transformer: dense1 to dense3 are (out, in), projection is (in, out)."""
    *inputs, output = [f"{torch}{name}" for name in names]
    return (*(_pair(f"{block}.dense{number}", layer) for number, layer in enumerate(inputs, 1)), _pair(f"{block}.projection", output, True))


_GPT2 = Family("GPT-2", "backbone.", (
    Layers(tuple(f"blocks.#.attention.dense{number}" for number in (1, 2, 3)), ("h.#.attn.c_attn",)),
    _pair("blocks.#.attention.projection", "h.#.attn.c_proj", True),
    _pair("blocks.#.output.mapping", "h.#.mlp.c_fc", True), _pair("blocks.#.output.projection", "h.#.mlp.c_proj", True),
    _pair("blocks.#.layernorm1", "h.#.ln_1"), _pair("blocks.#.layernorm2", "h.#.ln_2"), _pair("layernorm", "ln_f"),
    _pair("embedding.word_embedding", "wte"), _pair("embedding.position_embedding", "wpe"),
))
_BERT_BLOCK, _BERT_LAYER = "bert_encoder.encoder.blocks.#", "encoder.layer.#"
_BERT = Family("BERT", "bert.", (
    *_attention(f"{_BERT_BLOCK}.attention", ("self.query", "self.key", "self.value", "output.dense"), f"{_BERT_LAYER}.attention."),
    _pair(f"{_BERT_BLOCK}.layernorm2", f"{_BERT_LAYER}.attention.output.LayerNorm"),
    _pair(f"{_BERT_BLOCK}.layernorm1", f"{_BERT_LAYER}.output.LayerNorm"),
    _pair(f"{_BERT_BLOCK}.output.mapping", f"{_BERT_LAYER}.intermediate.dense", True),
    _pair(f"{_BERT_BLOCK}.output.projection", f"{_BERT_LAYER}.output.dense", True),
    _pair("word_embedding", "embeddings.word_embeddings"),
    _pair("embedding_postprocessor.full_position_embedding", "embeddings.position_embeddings"),
    _pair("embedding_postprocessor.token_type_embedding", "embeddings.token_type_embeddings"),
    _pair("embedding_postprocessor.layernorm", "embeddings.LayerNorm"), _pair("dense", "pooler.dense"),
    _pair("mlmloss.dense", "/cls.predictions.transform.dense"), _pair("mlmloss.layernorm", "/cls.predictions.transform.LayerNorm"),
    _pair("mlmloss.vocab_dense", "/cls.predictions.decoder"),
))
_T5_NAMES = ("q", "k", "v", "o")
_T5 = Family("T5", "t5_model.", (
    *_attention("tfm_encoder.blocks.#.attention", _T5_NAMES, "encoder.block.#.layer.0.SelfAttention."),
    *_attention("tfm_decoder.blocks.#.attention", _T5_NAMES, "decoder.block.#.layer.0.SelfAttention."),
    *_attention("tfm_decoder.blocks.#.cross_attention", _T5_NAMES, "decoder.block.#.layer.1.EncDecAttention."),
    _pair("tfm_encoder.blocks.#.layernorm1", "encoder.block.#.layer.0.layer_norm"),
    _pair("tfm_encoder.blocks.#.layernorm2", "encoder.block.#.layer.1.layer_norm"),
    _pair("tfm_decoder.blocks.#.layernorm1", "decoder.block.#.layer.0.layer_norm"),
    _pair("tfm_decoder.blocks.#.cross_attention_layernorm", "decoder.block.#.layer.1.layer_norm"),
    _pair("tfm_decoder.blocks.#.layernorm2", "decoder.block.#.layer.2.layer_norm"),
    *(_pair(f"tfm_{part}.blocks.#.output.{ours}", f"{part}.block.#.layer.{number}.DenseReluDense.{theirs}", True)
      for part, number in (("encoder", 1), ("decoder", 2)) for ours, theirs in (("mapping", "wi"), ("projection", "wo"))),
    *(_pair(f"tfm_{part}.blocks.#.attention.bias_generator", f"{part}.block.#.layer.0.SelfAttention.relative_attention_bias")
      for part in ("encoder", "decoder")),
    _pair("encoder_layernorm", "encoder.final_layer_norm"), _pair("decoder_layernorm", "decoder.final_layer_norm"),
    _pair("tfm_embedding_lookup", "shared"),
))
_LLAMA = Family("Llama", "model.", (
    _pair("tok_embeddings", "embed_tokens"),
    *(_pair(f"layers.#.attention.w{name}", f"layers.#.self_attn.{name}_proj") for name in "qkvo"),
    Layers(("layers.#.attention.w_qkv",), tuple(f"layers.#.self_attn.{name}_proj" for name in "qkv"), joins="heads"),
    *(_pair(f"layers.#.feed_forward.w{number}", f"layers.#.mlp.{name}_proj") for number, name in ((1, "gate"), (2, "down"), (3, "up"))),
    Layers(("layers.#.feed_forward.w_gate_hidden",), ("layers.#.mlp.gate_proj", "layers.#.mlp.up_proj"), joins="rows"),
    _pair("layers.#.attention_norm", "layers.#.input_layernorm"), _pair("layers.#.ffn_norm", "layers.#.post_attention_layernorm"),
    _pair("norm_out", "norm"), Layers(("/lm_head",), ("/lm_head",)),
))
FAMILIES = (_GPT2, _BERT, _T5, _LLAMA)


def link(mindspore: list[Slot], torch: list[Slot], choices: Choices) -> tuple[str | None, list[Link]]:
    """Return the family that both sides belong to, and the links of its layers; None if they belong to none.

    Raises ValueError if the file does not tell a layout that matters, and `choices` does not either.
    """
    for family in FAMILIES:
        prefixes = [_prefix(mindspore, [layers.mindspore for layers in family.layers]),
                    _prefix(torch, [layers.torch for layers in family.layers])]
        if None not in prefixes:
            return family.name, _links(family, mindspore, torch, [prefix or "" for prefix in prefixes], choices)
    return None, []


def mindspore_slots(torch: list[Slot], choices: Choices) -> list[Slot]:
    """Return the tensors of the Cell of mindformers that has the values of torch's file. Raises ValueError for other models."""
    for family in FAMILIES:
        prefix = _prefix(torch, [layers.torch for layers in family.layers])
        if prefix is not None:
            return _slots(family, {slot.path: slot for slot in torch}, prefix, choices)
    names = ", ".join(family.name for family in FAMILIES)
    raise ValueError(message("--convention mindformers", f"a model of one of these kinds: {names}"))


def _slots(family: Family, torch: dict[str, Slot], prefix: str, choices: Choices) -> list[Slot]:
    slots: list[Slot] = []
    used: set[str] = set()
    for layers in family.layers:
        if (layers.joins and choices.fused is None) or (not layers.joins and choices.fused and _is_joined(family, layers)):
            continue
        pattern = _pattern(layers.torch[0], prefix)
        for path in torch:
            head, _, leaf = path.rpartition(".")
            match = pattern.fullmatch(head)
            names = [f"{_numbered(name, match.groups(), prefix)}.{leaf}" for name in layers.torch] if match else []
            if match and all(name in torch for name in names):
                used.update(names)
                slots += _parts(family, layers, match.groups(), leaf, [torch[name] for name in names])
    lost = [name for name in torch if name not in used]
    if lost:
        listed = ", ".join(map(repr, lost[:5]))
        raise ValueError(message(f"--convention mindformers: {listed}", f"tensors that mindformers' {family.name} has"))
    return slots


def _is_joined(family: Family, layers: Layers) -> bool:
    """Return whether another entry joins this layer of torch with others."""
    return any(other.joins and set(layers.torch) <= set(other.torch) for other in family.layers)


def _parts(family: Family, layers: Layers, numbers: tuple[str, ...], leaf: str, theirs: list[Slot]) -> list[Slot]:
    """Return the tensors of MindSpore's layers, each with an equal share of the rows of torch's."""
    count = len(layers.mindspore)
    rows, columns = sum(map(rows_of, theirs)) // count, theirs[0].oriented[1:]
    slots = []
    for pattern in layers.mindspore:
        path = f"{_numbered(pattern, numbers, family.prefix)}.{leaf}"
        is_in_out = layers.is_in_out and bool(columns)
        slots.append(Slot(_spelled(path, pattern, family), path, (*columns, rows) if is_in_out else (rows, *columns), is_in_out))
    return slots


def _spelled(path: str, pattern: str, family: Family) -> str:
    """Return the name of a tensor with mindformers' word for its kind."""
    head, _, leaf = path.rpartition(".")
    layer = pattern.rpartition(".")[2]
    if layer == "bias_generator":
        return f"{head}.embeddings_table"
    if "embedding" in layer:
        return f"{head}.{'embedding_weight' if family is _LLAMA else 'embedding_table'}" if leaf == "weight" else path
    if "layernorm" in layer:
        return f"{head}.{'gamma' if leaf == 'weight' else 'beta'}"
    return path


def _pattern(name: str, prefix: str | None) -> re.Pattern[str]:
    """Return the pattern of a layer's paths; the first group is the prefix if that is open."""
    is_absolute = name.startswith("/")
    expression = re.escape(name.lstrip("/")).replace(r"\#", r"(\d+)")
    head = "" if is_absolute else r"((?:\w+\.)*?)" if prefix is None else re.escape(prefix)
    return re.compile(head + expression)


def _numbered(name: str, numbers: tuple[str, ...], prefix: str) -> str:
    remaining = iter(numbers)
    return ("" if name.startswith("/") else prefix) + re.sub("#", lambda _: next(remaining), name.lstrip("/"))


def _head(path: str) -> str:
    return path.rpartition(".")[0]


def _prefix(slots: list[Slot], layers: list[tuple[str, ...]]) -> str | None:
    """Return what precedes the names of a family's blocks; None if most of its blocks' layers are absent, or there are several prefixes."""
    prefixes: set[str] = set()
    count = 0
    numbered = [names for names in layers if "#" in names[0]]
    heads = {_head(slot.path) for slot in slots}
    for names in numbered:
        pattern = _pattern(names[0], None)
        matches = [match for head in heads if (match := pattern.fullmatch(head))]
        prefixes.update(match[1] for match in matches)
        count += bool(matches)
    return prefixes.pop() if len(prefixes) == 1 and count * 2 > len(numbered) else None


def _links(family: Family, mindspore: list[Slot], torch: list[Slot], prefixes: list[str], choices: Choices) -> list[Link]:
    ours = {_plain(slot.path): slot for slot in mindspore}
    theirs = {name: slot for slot in torch for name in (slot.path, *slot.aliases)}
    links = []
    for layers in family.layers:
        pattern = _pattern(layers.mindspore[0], prefixes[0])
        for path in ours:
            head, _, leaf = path.rpartition(".")
            match = pattern.fullmatch(head)
            if match is None:
                continue
            our_slots = [ours.get(f"{_numbered(name, match.groups(), prefixes[0])}.{leaf}") for name in layers.mindspore]
            their_slots = [theirs.get(f"{_numbered(name, match.groups(), prefixes[1])}.{leaf}") for name in layers.torch]
            if None in our_slots or None in their_slots:
                continue
            links.append(_link(layers, [slot for slot in our_slots if slot], [slot for slot in their_slots if slot], choices))
    return links


def _plain(path: str) -> str:
    head, _, leaf = path.rpartition(".")
    return f"{head}.{_LEAVES.get(leaf, leaf)}"


def _link(layers: Layers, ours: list[Slot], theirs: list[Slot], choices: Choices) -> Link:
    """Return the link of two groups of layers, with the layouts that the conventions have."""
    ours = [slot._replace(is_in_out=layers.is_in_out) if slot.is_in_out is None else slot for slot in ours]
    if theirs[0].is_in_out is None and any(name in layers.torch[0] for name in (".c_", )):
        theirs = [slot._replace(is_in_out=True) for slot in theirs]             # transformers stores the layers of GPT-2 as Conv1D
    rows = _rows(layers, theirs, choices)
    return Link(tuple(ours), tuple(theirs), rows)


def _rows(layers: Layers, theirs: list[Slot], choices: Choices) -> np.ndarray | None:
    """Return the rows of MindSpore's tensors that torch's consist of; None if they are equal."""
    counts = [rows_of(slot) for slot in theirs]
    rows: np.ndarray = np.arange(sum(counts))
    if layers.joins:
        if choices.fused is None:
            raise ValueError(with_hint(
                f"{layers.mindspore[0]}: mindformers up to 1.3 joins the rows one layer after the other, later versions by heads.",
                "pass --fused plain for files of mindformers up to 1.3, --fused grouped for later ones",
            ))
        if choices.fused == "grouped":
            rows = _grouped(counts, _groups(layers, choices))
    if choices.rotary == "interleaved" and layers.torch[0].endswith("self_attn.q_proj"):
        names = [name.rpartition(".")[2] for name in layers.torch]
        rows = rows[np.concatenate([
            _half(start, count, name, choices) for start, count, name in zip(np.cumsum([0, *counts[:-1]]).tolist(), counts, names)
        ])]
    elif choices.rotary == "interleaved" and layers.torch[0].endswith("self_attn.k_proj"):
        rows = _half(0, counts[0], "k_proj", choices)
    return None if (rows == np.arange(len(rows))).all() else rows


def _groups(layers: Layers, choices: Choices) -> int | None:
    """Return the number of groups of joined rows: of the heads of keys; None for one group for each row."""
    return _heads(choices)[1] if layers.joins == "heads" else None


def _heads(choices: Choices) -> tuple[int, int]:
    if choices.heads is None:
        raise ValueError(with_hint("the number of heads is unknown.", "pass --like transformers:CLASS with --config"))
    return choices.heads


def _grouped(counts: list[int], groups: int | None) -> np.ndarray:
    """Return the positions in grouped rows of rows that are one layer after the other."""
    number = counts[0] if groups is None else groups
    if any(count % number for count in counts):
        raise ValueError(message(f"{counts} rows in {number} groups", "numbers of rows that the heads divide"))
    positions = np.arange(sum(counts)).reshape(number, -1)
    ends = np.cumsum([count // number for count in counts])
    return np.concatenate([part.ravel() for part in np.split(positions, ends[:-1], axis=1)])


def _half(start: int, count: int, name: str, choices: Choices) -> np.ndarray:
    """Return the rows of queries or keys in the order of transformers, which rotates halves, from rows whose neighbours are rotated."""
    rows = np.arange(start, start + count)
    if name not in ("q_proj", "k_proj"):
        return rows
    heads = _heads(choices)[0 if name == "q_proj" else 1]
    if count % (2 * heads):
        raise ValueError(message(f"{name}: {count} rows for {heads} heads", "an even number of rows for each head"))
    return rows.reshape(heads, -1, 2).transpose(0, 2, 1).ravel()
