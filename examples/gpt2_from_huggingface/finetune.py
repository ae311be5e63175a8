"""Fine-tunes GPT-2 from weights and a tokenizer in the files of Hugging Face, in a plain MindSpore network.

torchspore run finetune.py                                   # tiny random weights and a tiny tokenizer: no network is needed
hf download openai-community/gpt2 --local-dir gpt2           # the published weights, 548 MB
torchspore run finetune.py --model gpt2 --rate 1e-5

Needs: pip install transformers
"""
import argparse
import os
import tempfile

import mindspore as ms
import numpy as np
import torch
from mindspore import Tensor, nn, ops
from tiny_model import write_tiny_model
from transformers import AutoConfig, AutoTokenizer, GPT2LMHeadModel

LENGTH = 32
HERE = os.path.dirname(os.path.abspath(__file__))


class Attention(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Dense(width, 3 * width)
        self.c_proj = nn.Dense(width, width)

    def construct(self, x, mask):
        batch, length, width = x.shape
        parts = self.c_attn(x).reshape(batch, length, 3, self.heads, width // self.heads).transpose(2, 0, 3, 1, 4)
        query, key, value = parts[0], parts[1], parts[2]
        scores = ops.matmul(query, key.swapaxes(-1, -2)) / (width // self.heads) ** 0.5 + mask
        return self.c_proj(ops.matmul(ops.softmax(scores, -1), value).transpose(0, 2, 1, 3).reshape(batch, length, width))


class Feed(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Dense(width, 4 * width)
        self.c_proj = nn.Dense(4 * width, width)

    def construct(self, x):
        return self.c_proj(ops.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm((width,), epsilon=1e-5), nn.LayerNorm((width,), epsilon=1e-5)
        self.attn, self.mlp = Attention(width, heads), Feed(width)

    def construct(self, x, mask):
        x = x + self.attn(self.ln_1(x), mask)
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Cell):
    """Takes tokens (batch, length) and gives scores (batch, length, vocabulary)."""

    def __init__(self, config):
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.h = nn.CellList([Block(config.n_embd, config.n_head) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm((config.n_embd,), epsilon=1e-5)

    def construct(self, tokens):
        length = tokens.shape[1]
        mask = ops.triu(ops.full((length, length), -1e9, dtype=ms.float32), 1)
        x = self.wte(tokens) + self.wpe(ops.arange(length))
        for block in self.h:
            x = block(x, mask)
        return ops.matmul(self.ln_f(x), self.wte.embedding_table.T)


def load_weights(net, path):
    """Load `model.safetensors`. The matrices of GPT-2 are (inputs, outputs), those of Dense (outputs, inputs)."""
    values = {name.removeprefix("transformer."): value for name, value in ms.load_checkpoint(path, format="safetensors").items()}
    for name, parameter in net.parameters_and_names():
        source = name.replace(".gamma", ".weight").replace(".beta", ".bias").replace(".embedding_table", ".weight")
        value = values[source].asnumpy()
        is_matrix = value.ndim == 2 and ".c_" in name
        parameter.set_data(Tensor(value.T if is_matrix else value))


def batches(tokens, length, size, count):
    """Yield batches of consecutive tokens from random positions of the text."""
    generator = np.random.default_rng(0)
    for _ in range(count):
        starts = generator.integers(0, len(tokens) - length - 1, size)
        yield Tensor(np.stack([tokens[start:start + length + 1] for start in starts]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", help="a folder with config.json, model.safetensors and the files of the tokenizer")
    parser.add_argument("--text", default=os.path.join(HERE, "../../LICENSE"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rate", type=float, default=3e-3)
    args = parser.parse_args()

    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(1)
    with open(args.text, encoding="utf-8") as file:
        text = file.read()
    model = args.model or write_tiny_model(tempfile.mkdtemp(), text)
    tokenizer = AutoTokenizer.from_pretrained(model)
    config = AutoConfig.from_pretrained(model)
    net = GPT2(config)
    load_weights(net, os.path.join(model, "model.safetensors"))

    tokens = np.array(tokenizer(text)["input_ids"], np.int32)
    with torch.no_grad():
        scores = GPT2LMHeadModel.from_pretrained(model)(torch.tensor(tokens[None, :LENGTH].astype(np.int64))).logits.numpy()
    difference = np.abs(net(Tensor(tokens[None, :LENGTH])).asnumpy() - scores).max()
    print(f"the scores agree with those of transformers to 1e-3: {difference < 1e-3}", flush=True)
    loss = nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), learning_rate=args.rate)

    def forward(batch):
        scores = net(batch[:, :-1])
        return loss(scores.reshape(-1, scores.shape[-1]), batch[:, 1:].reshape(-1))

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)
    print(f"{len(tokens)} tokens, {sum(parameter.size for parameter in net.trainable_params())} weights", flush=True)
    for step, batch in enumerate(batches(tokens, LENGTH, 16, args.steps), 1):
        value, gradients = gradient(batch)
        optimizer(gradients)
        if step == 1 or step % (args.steps // 4) == 0:
            print(f"step {step}: loss {float(value):.3f}", flush=True)

    prompt = tokenizer("Licensed under the")["input_ids"]
    for _ in range(12):
        window = prompt[-LENGTH:]                                    # padded, so that each call has the same shape and runs the same graph
        scores = net(Tensor([window + [0] * (LENGTH - len(window))], ms.int32))
        prompt.append(int(scores[0, len(window) - 1].argmax()))
    print(f"continued: {' '.join(tokenizer.decode(prompt).split())}")


if __name__ == "__main__":
    main()
