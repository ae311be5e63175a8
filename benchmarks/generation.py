#!/usr/bin/env python3
"""Text generation with a growing cache of keys and values: `python benchmarks/generation.py [--oracle PYTHON] [--rounds N]`.

A turn generates 64 tokens, one a call. *First* is the first turn of a fresh process, with all captures and compilations; torch.compile has
`dynamic=True`, so that it does not compile each length either. The forward pass of torch is written by hand, without torchspore.
"""
from __future__ import annotations

import statistics
import sys
from collections.abc import Callable

import turns

COMPILE, EAGER = "torch.compile", "torch eager"
MINDSPORE = ("MindSpore 2.10 PyNative",)
"""In graph mode MindSpore 2.10 compiles a graph for each length: more than four minutes for the first turn."""


def make(compiled: bool = False) -> Callable[[], None]:
    """Return a function that generates TOKENS tokens in torch."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    width, heads, layers, words, tokens = 256, 4, 4, 1000, 64
    inner = width // heads

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.joined, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
            batch, length, _ = x.shape
            query, key, value = (
                part.reshape(batch, length, heads, inner).transpose(1, 2) for part in self.joined(self.norm1(x)).split(width, 2))
            keys, values = torch.cat((keys, key), 2), torch.cat((values, value), 2)
            mixed = F.scaled_dot_product_attention(query, keys, values)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(F.gelu(self.up(self.norm2(x)))), keys, values

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.positions = nn.Embedding(words, width), nn.Embedding(512, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, token: torch.Tensor, position: torch.Tensor, cache: list[tuple[torch.Tensor, ...]]) -> tuple:
            x, longer = self.words(token) + self.positions(position), []
            for block, (keys, values) in zip(self.blocks, cache):
                x, keys, values = block(x, keys, values)
                longer.append((keys, values))
            return self.head(self.norm(x))[:, -1], longer

    net = Gpt().eval()
    forward = torch.compile(net, dynamic=True) if compiled else net

    def generate() -> None:
        token, cache = torch.tensor([[1]]), [(torch.zeros(1, heads, 1, inner),) * 2 for _ in range(layers)]
        with torch.inference_mode():
            for position in range(tokens):
                logits, cache = forward(token, torch.tensor([[position]]), cache)
                token = torch.tensor([[int(logits.argmax())]])

    return generate


def serve(how: str) -> None:
    """Run in a worker: the turns of one contender."""
    if how in (EAGER, COMPILE):
        step = make(how == COMPILE)
    else:
        if not how.startswith("MindSpore"):
            import torchspore

            torchspore.install()
        import mindspore as ms

        level = how.rpartition(" ")[2]
        ms.set_context(mode=ms.PYNATIVE_MODE if level == "PyNative" else ms.GRAPH_MODE)
        if level in ("O0", "O1"):
            ms.set_context(jit_config={"jit_level": level})
        from programs import generation

        step = generation.step()
    turns.serve(step, lambda out: None)


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
        return
    options = turns.arguments(__doc__ or "")
    contenders = [EAGER, *([] if options.no_compile else [COMPILE]), "torchspore PyNative", "torchspore O0", "torchspore O1"]
    pythons = dict.fromkeys(contenders, sys.executable) | dict.fromkeys(MINDSPORE if options.oracle else (), options.oracle)
    started = {contender: turns.Worker(python, "generation.py", "--serve", contender) for contender, python in pythons.items()}
    first = {contender: worker.first for contender, worker in started.items()}
    times = turns.measure_stopped(started, options.rounds)
    best = COMPILE if COMPILE in times else EAGER
    print("\n### GPT of four layers, width 256: 64 tokens with a growing cache, one a call\n")
    print(f"| contender | s, first | ms a token | ratio to {EAGER} (median, min .. max of {options.rounds}) | ratio to {best} |")
    print("|---|---:|---:|---|---|")
    for contender, seconds in times.items():
        ratios = f"{turns.ratio(seconds, times[EAGER])} | {turns.ratio(seconds, times[best])}"
        print(f"| {contender} | {first[contender]:.1f} | {statistics.median(seconds) * 1e3 / 64:.3f} | {ratios} |")


if __name__ == "__main__":
    main()
