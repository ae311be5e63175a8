"""Hugging Face's Llama, GPT-2, BERT and T5 as mindformers and mindnlp store them: `ckpt from-torch --convention`, and back."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from support import torchvision_operators

from torchspore.cli import ckpt

pytestmark = pytest.mark.needs("transformers")
MODELS: dict[str, dict[str, Any]] = {
    "LlamaForCausalLM": {"vocab_size": 11, "hidden_size": 16, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4,
                         "num_key_value_heads": 2},
    "GPT2Model": {"vocab_size": 11, "n_positions": 8, "n_embd": 8, "n_layer": 2, "n_head": 2, "bos_token_id": 0, "eos_token_id": 0},
    "BertModel": {"vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8},
    "T5Model": {"vocab_size": 11, "d_model": 8, "d_kv": 4, "num_heads": 2, "d_ff": 8, "num_layers": 2},
}


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torchvision_operators.declare()
    monkeypatch.chdir(tmp_path)


def options(name: str) -> tuple[str, ...]:
    return "--like", f"transformers:{name}", "--config", json.dumps(MODELS[name])


def saved(name: str) -> tuple[Any, dict[str, np.ndarray]]:
    """A model with random values, saved as model.pt, and its values."""
    from torchspore.torch_modules.weights import targets

    model = targets.build(f"transformers:{name}", json.dumps(MODELS[name]))
    torch.manual_seed(1)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    torch.save(model.state_dict(), "model.pt")
    return model, {key: value.numpy() for key, value in model.state_dict().items()}


def converted(name: str, *words: str) -> dict[str, np.ndarray]:
    """The values of model.pt under mindformers' names; they come back equal."""
    assert ckpt.run(["from-torch", *options(name), "--convention", "mindformers", *words, "model.pt", "net.ckpt"]) == 0
    assert ckpt.run(["to-torch", *options(name), *words, "net.ckpt", "back.pt"]) == 0
    assert ckpt.run(["diff", "model.pt", "back.pt"]) == 0
    return {key: value.asnumpy() for key, value in ms.load_checkpoint("net.ckpt").items()}


def test_gpt2() -> None:
    _, values = saved("GPT2Model")
    ours = converted("GPT2Model")
    queries, keys, _ = np.split(values["h.1.attn.c_attn.weight"], 3, 1)
    assert (ours["backbone.blocks.1.attention.dense1.weight"] == queries.T).all()                 # (out, in)
    assert (ours["backbone.blocks.1.attention.dense2.weight"] == keys.T).all()
    assert (ours["backbone.blocks.1.attention.dense3.bias"] == values["h.1.attn.c_attn.bias"][16:]).all()
    assert (ours["backbone.blocks.1.attention.projection.weight"] == values["h.1.attn.c_proj.weight"]).all()      # (in, out) on both sides
    assert (ours["backbone.blocks.0.output.mapping.weight"] == values["h.0.mlp.c_fc.weight"]).all()
    assert (ours["backbone.layernorm.gamma"] == values["ln_f.weight"]).all()
    assert (ours["backbone.embedding.position_embedding.embedding_table"] == values["wpe.weight"]).all()


def test_bert() -> None:
    _, values = saved("BertModel")
    ours = converted("BertModel")
    block, layer = "bert.bert_encoder.encoder.blocks.1", "encoder.layer.1"
    assert (ours[f"{block}.attention.dense2.weight"] == values[f"{layer}.attention.self.key.weight"]).all()
    assert (ours[f"{block}.attention.projection.weight"] == values[f"{layer}.attention.output.dense.weight"].T).all()
    assert (ours[f"{block}.output.mapping.weight"] == values[f"{layer}.intermediate.dense.weight"].T).all()         # square: no shape tells
    assert (ours[f"{block}.output.projection.weight"] == values[f"{layer}.output.dense.weight"].T).all()
    assert (ours[f"{block}.layernorm2.gamma"] == values[f"{layer}.attention.output.LayerNorm.weight"]).all()
    assert (ours["bert.embedding_postprocessor.token_type_embedding.embedding_table"]
            == values["embeddings.token_type_embeddings.weight"]).all()
    assert (ours["bert.dense.weight"] == values["pooler.dense.weight"]).all()


def test_t5() -> None:
    _, values = saved("T5Model")
    ours = converted("T5Model")
    block, layer = "t5_model.tfm_decoder.blocks.1", "decoder.block.1.layer"
    assert (ours[f"{block}.cross_attention.dense1.weight"] == values[f"{layer}.1.EncDecAttention.q.weight"]).all()
    assert (ours[f"{block}.attention.projection.weight"] == values[f"{layer}.0.SelfAttention.o.weight"].T).all()
    assert (ours[f"{block}.output.mapping.weight"] == values[f"{layer}.2.DenseReluDense.wi.weight"].T).all()
    assert (ours["t5_model.tfm_embedding_lookup.embedding_table"] == values["shared.weight"]).all()
    assert (ours["t5_model.tfm_encoder.blocks.0.attention.bias_generator.embeddings_table"]
            == values["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]).all()


def llama_parts(values: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [values[f"model.layers.1.self_attn.{name}_proj.weight"] for name in "qkv"]


def test_llama() -> None:
    _, values = saved("LlamaForCausalLM")
    ours = converted("LlamaForCausalLM")
    assert (ours["model.layers.1.attention.wk.weight"] == llama_parts(values)[1]).all()
    assert (ours["model.layers.0.feed_forward.w2.weight"] == values["model.layers.0.mlp.down_proj.weight"]).all()
    assert (ours["model.tok_embeddings.embedding_weight"] == values["model.embed_tokens.weight"]).all()
    assert (ours["model.norm_out.weight"] == values["model.norm.weight"]).all()
    assert (ours["lm_head.weight"] == values["lm_head.weight"]).all()


@pytest.mark.parametrize("fused", ["plain", "grouped"])
def test_joined_rows_of_llama(fused: str, capsys: Any) -> None:
    _, values = saved("LlamaForCausalLM")
    ours = converted("LlamaForCausalLM", "--fused", fused)
    queries, keys, rows = llama_parts(values)
    gate, up = (values[f"model.layers.0.mlp.{name}_proj.weight"] for name in ("gate", "up"))
    if fused == "plain":
        expected, expected_gate = np.concatenate([queries, keys, rows]), np.concatenate([gate, up])
    else:                                                    # two groups: two heads of queries, one of keys, one of values, each of 4 rows
        expected = np.concatenate([queries[:8], keys[:4], rows[:4], queries[8:], keys[4:], rows[4:]])
        expected_gate = np.stack([gate, up], 1).reshape(24, 16)
    assert (ours["model.layers.1.attention.w_qkv.weight"] == expected).all()
    assert (ours["model.layers.0.feed_forward.w_gate_hidden.weight"] == expected_gate).all()
    assert ckpt.run(["to-torch", *options("LlamaForCausalLM"), "net.ckpt", "other.pt"]) == 2
    assert "pass --fused plain" in capsys.readouterr().err and not Path("other.pt").exists()


@pytest.mark.parametrize("words", [(), ("--fused", "grouped")])
def test_rotary_embeddings_of_neighbours(words: tuple[str, ...]) -> None:
    """Meta rotates neighbours, Hugging Face halves: rows 0, 1, 2, 3 of Meta's heads of 4 rows are rows 0, 2, 1, 3 of Hugging Face's."""
    _, values = saved("LlamaForCausalLM")
    ours = converted("LlamaForCausalLM", "--rotary", "interleaved", *words)
    queries = llama_parts(values)[0]
    stored = ours["model.layers.1.attention.w_qkv.weight" if words else "model.layers.1.attention.wq.weight"]
    assert (stored[:4] == queries[[0, 2, 1, 3]]).all() and (stored[4:8] == queries[[4, 6, 5, 7]]).all()


@pytest.mark.parametrize("name", MODELS)
def test_mindnlp_stores_the_names_of_transformers(name: str) -> None:
    """Releases before 0.4 use MindSpore's words for the parameters of norms and embeddings, and the layout of Conv1D is equal."""
    model, values = saved(name)
    kinds = {path: type(module).__name__ for path, module in model.named_modules()}

    def spelled(key: str) -> str:
        head, _, leaf = key.rpartition(".")
        kind = kinds.get(head, "")
        if kind == "LayerNorm":
            return f"{head}.{'gamma' if leaf == 'weight' else 'beta'}"
        return f"{head}.embedding_table" if kind == "Embedding" else key

    ms.save_checkpoint([{"name": spelled(key), "data": ms.Tensor(value)} for key, value in values.items()], "net.ckpt")
    assert ckpt.run(["to-torch", *options(name), "net.ckpt", "back.pt"]) == 0
    assert ckpt.run(["diff", "model.pt", "back.pt"]) == 0


def test_another_model_has_no_such_convention(capsys: Any) -> None:
    from torchspore.torch_modules.weights import targets

    config = json.dumps({"vocab_size": 11, "embedding_size": 8, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
                         "intermediate_size": 8})
    torch.save(targets.build("transformers:AlbertModel", config).state_dict(), "model.pt")
    words = ["--like", "transformers:AlbertModel", "--config", config, "--convention", "mindformers"]
    assert ckpt.run(["from-torch", *words, "model.pt", "net.ckpt"]) == 2
    assert "GPT-2, BERT, T5, Llama" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "words", "text"), [
    ("transformers:bert-base-uncased", (), "transformers:BertModel with --config FILE"),
    ("transformers:logging", (), "the class of a model"),
    ("transformers:BertModel", ("--config", "no.json"), "--config no.json"),
    ("transformers:BertModel", ("--config", "[1]"), "--config [1]"),
])
def test_wrong_models_are_named(name: str, words: tuple[str, ...], text: str, capsys: Any) -> None:
    torch.save({"a": torch.zeros(1)}, "model.pt")
    assert ckpt.run(["from-torch", "--like", name, *words, "model.pt", "net.ckpt"]) == 2
    assert text in capsys.readouterr().err


def test_a_folder_with_a_configuration() -> None:
    saved("BertModel")
    Path("bert").mkdir()
    Path("bert/config.json").write_text(json.dumps({**MODELS["BertModel"], "model_type": "bert", "architectures": ["BertModel"]}))
    assert ckpt.run(["from-torch", "--like", "transformers:bert", "model.pt", "net.ckpt"]) == 0
    assert "encoder.layer.0.attention.output.LayerNorm.gamma" in ms.load_checkpoint("net.ckpt")
