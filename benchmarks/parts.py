#!/usr/bin/env python3
"""A net that needs two graphs, because it reads a value in the middle: in parts and in PyNative; values and gradients."""
from __future__ import annotations

import turns

import torchspore


def main() -> None:
    """Print a table for each size."""
    options = turns.arguments(__doc__ or "")
    torchspore.install()
    import mindspore as ms
    from mindspore import nn, ops

    class Block(nn.Cell):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.first, self.second, self.norm = nn.Dense(width, width), nn.Dense(width, width), nn.LayerNorm((width,))
            self.seen = 0.0

        def construct(self, x):
            h = self.norm(ops.gelu(self.first(x)))
            h = self.norm(h * 2 + x)
            self.largest = float(h.max().asnumpy())
            y = ops.tanh(self.second(h)) + ops.sigmoid(h)
            return self.norm(y * y + x)

    for width in (16, 256):
        net, x = Block(width), ops.ones((width, width))
        gradient = ms.value_and_grad(net, None, net.trainable_params())
        for title, call in (("values", net), ("gradients", gradient)):
            def timed(mode: int, call=call, x=x):
                def step() -> None:
                    ms.set_context(mode=mode)
                    call(x)
                return step

            for _ in range(20):
                timed(ms.GRAPH_MODE)()
            both = {"PyNative": turns.timer(timed(1)), "in parts": turns.timer(timed(0))}
            turns.compare(
                f"A net with a graph break, {width} wide, {title}", both, "PyNative", options.seconds, options.rounds, "us", "a call",
            )


if __name__ == "__main__":
    main()
