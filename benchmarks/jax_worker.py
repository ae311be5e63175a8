#!/usr/bin/env python3
"""Steps in plain jax under jax.jit, as standard input requests; answers with their seconds. Needs a Python that has jax.

The nets are those of `programs/`, written as is usual in jax: functions of a dict of arrays, images with channels last.
"""
from __future__ import annotations

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import turns

Array = Any
Params = dict[str, Any]
RNG = np.random.default_rng(0)


def dense(inputs: int, outputs: int) -> Params:
    """Return a weight of (inputs, outputs) and a bias."""
    return {"w": jnp.asarray(RNG.normal(0, inputs**-0.5, (inputs, outputs)), jnp.float32), "b": jnp.zeros(outputs)}


def conv(inputs: int, outputs: int, size: int) -> Array:
    """Return a weight of (size, size, inputs, outputs)."""
    return jnp.asarray(RNG.normal(0, (inputs * size * size) ** -0.5, (size, size, inputs, outputs)), jnp.float32)


def norm(width: int) -> Params:
    """Return gain and shift."""
    return {"g": jnp.ones(width), "b": jnp.zeros(width)}


def linear(p: Params, x: Array) -> Array:
    """Return x w + b."""
    return x @ p["w"] + p["b"]


def convolve(w: Array, x: Array, stride: int = 1, padding: int = 0) -> Array:
    """Return the convolution of an image with channels last."""
    return jax.lax.conv_general_dilated(x, w, (stride, stride), [(padding, padding)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def max_pool(x: Array, size: int, stride: int, padding: int = 0) -> Array:
    """Return the maximum of each window."""
    space = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, size, size, 1), (1, stride, stride, 1), space)


def layer_norm(p: Params, x: Array, eps: float) -> Array:
    """Normalise over the last axis."""
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + eps) * p["g"] + p["b"]


class Norms:
    """Batch norms: in training they use the batch's statistics and store new running ones in `new`, otherwise they use the running ones."""

    def __init__(self, params: Params, running: Params, training: bool) -> None:
        self.params, self.running, self.training, self.new = params, running, training, {}

    def __call__(self, name: str, x: Array) -> Array:
        p, (mean, variance) = self.params[name], self.running[name]
        if self.training:
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            self.new[name] = tuple(0.9 * old + 0.1 * now for old, now in zip(self.running[name], (mean, variance)))
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["g"] + p["b"]


def mlp() -> tuple[Any, ...]:
    """Return the MLP 784-512-512-10."""
    params = {"0": dense(784, 512), "1": dense(512, 512), "2": dense(512, 10)}

    def forward(p: Params, s: Params, x: Array, training: bool) -> tuple[Array, Params]:
        x = jax.nn.relu(linear(p["1"], jax.nn.relu(linear(p["0"], x))))
        return linear(p["2"], x), s

    return params, {}, forward, RNG.random((128, 784), np.float32), RNG.integers(0, 10, 128)


def lenet() -> tuple[Any, ...]:
    """Return LeNet-5."""
    params = {"c0": conv(1, 6, 5), "c1": conv(6, 16, 5), "0": dense(256, 120), "1": dense(120, 84), "2": dense(84, 10)}

    def forward(p: Params, s: Params, x: Array, training: bool) -> tuple[Array, Params]:
        x = max_pool(jax.nn.relu(convolve(p["c0"], x)), 2, 2)
        x = max_pool(jax.nn.relu(convolve(p["c1"], x)), 2, 2).reshape(x.shape[0], -1)
        return linear(p["2"], jax.nn.relu(linear(p["1"], jax.nn.relu(linear(p["0"], x))))), s

    return params, {}, forward, RNG.random((64, 28, 28, 1), np.float32), RNG.integers(0, 10, 64)


def resnet(counts: tuple[int, ...], is_deep: bool, classes: int, size: int, batch: int) -> tuple[Any, ...]:
    """Return ResNet-18 (`is_deep` False: two 3x3) or ResNet-50 (1x1, 3x3, 1x1)."""
    params: Params = {"stem": conv(3, 64, 7)}
    blocks, inputs, wide = [], 64, 4 if is_deep else 1
    for stage, count in enumerate(counts):
        for index in range(count):
            width, stride = 64 << stage, 2 if stage and not index else 1
            shapes = [(inputs, width, 1), (width, width, 3), (width, width * 4, 1)] if is_deep else [(inputs, width, 3), (width, width, 3)]
            name = f"{stage}.{index}"
            blocks.append((name, len(shapes), stride, stride != 1 or inputs != width * wide))
            for number, shape in enumerate(shapes):
                params[f"{name}.{number}"] = conv(*shape)
            if blocks[-1][3]:
                params[f"{name}.down"] = conv(inputs, width * wide, 1)
            inputs = width * wide
    running = {name: (jnp.zeros(w.shape[-1]), jnp.ones(w.shape[-1])) for name, w in params.items()}
    params |= {f"n{name}": norm(w.shape[-1]) for name, w in params.items()}
    params["fc"] = dense(inputs, classes)

    def forward(p: Params, s: Params, x: Array, training: bool) -> tuple[Array, Params]:
        norms = Norms({name: p[f"n{name}"] for name in s}, s, training)

        def unit(name: str, x: Array, stride: int) -> Array:
            return norms(name, convolve(p[name], x, stride, p[name].shape[0] // 2))

        x = max_pool(jax.nn.relu(unit("stem", x, 2)), 3, 2, 1)
        for name, count, stride, has_way in blocks:
            around = unit(f"{name}.down", x, stride) if has_way else x
            strided = 1 if is_deep else 0
            for number in range(count):
                x = unit(f"{name}.{number}", x, stride if number == strided else 1)
                x = jax.nn.relu(x) if number < count - 1 else x
            x = jax.nn.relu(x + around)
        return linear(p["fc"], x.mean((1, 2))), norms.new or s

    return params, running, forward, RNG.random((batch, size, size, 3), np.float32), RNG.integers(0, classes, batch)


def attention(p: Params, x: Array, heads: int, is_causal: bool) -> Array:
    """Return the self-attention of x."""
    batch, length, width = x.shape
    q, k, v = (linear(p[name], x).reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3) for name in "qkv")
    scores = q @ k.transpose(0, 1, 3, 2) * (width // heads) ** -0.5
    if is_causal:
        scores = scores + jnp.triu(jnp.full((length, length), -1e9), 1)
    return linear(p["o"], (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, length, width))


def transformer(words: int, length: int, width: int, heads: int, layers: int, batch: int, is_gpt: bool) -> tuple[Any, ...]:
    """Return a GPT (normalised before, a head) or BERT's encoder (normalised after)."""
    params: Params = {"token": jnp.asarray(RNG.normal(0, 0.02, (words, width)), jnp.float32)}
    params |= {"position": jnp.asarray(RNG.normal(0, 0.02, (length, width)), jnp.float32), "norm": norm(width)}
    params["layers"] = [
        {**{name: dense(width, width) for name in "qkvo"}, "n1": norm(width), "n2": norm(width), "up": dense(width, 4 * width),
         "down": dense(4 * width, width)} for _ in range(layers)
    ]
    if is_gpt:
        params["head"] = jnp.asarray(RNG.normal(0, 0.02, (width, words)), jnp.float32)

    def forward(p: Params, s: Params, ids: Array, training: bool) -> tuple[Array, Params]:
        eps = 1e-5 if is_gpt else 1e-12
        x = p["token"][ids] + p["position"]
        x = x if is_gpt else layer_norm(p["norm"], x, eps)
        for layer in p["layers"]:
            def grown(x: Array, layer: Params = layer) -> Array:
                return linear(layer["down"], jax.nn.gelu(linear(layer["up"], x), approximate=is_gpt))

            if is_gpt:
                x = x + attention(layer, layer_norm(layer["n1"], x, eps), heads, True)
                x = x + grown(layer_norm(layer["n2"], x, eps))
            else:
                x = layer_norm(layer["n1"], x + attention(layer, x, heads, False), eps)
                x = layer_norm(layer["n2"], x + grown(x), eps)
        return ((layer_norm(p["norm"], x, eps) @ p["head"]).reshape(-1, words) if is_gpt else x), s

    ids = RNG.integers(0, words, (batch, length + 1))
    return params, {}, forward, ids[:, :-1], ids[:, 1:].reshape(-1)


NETS = {
    "mlp": mlp, "lenet": lenet,
    "resnet18": lambda size=64, batch=16: resnet((2, 2, 2, 2), False, 10, size, batch),
    "resnet50": lambda size=224, batch=8: resnet((3, 4, 6, 3), True, 1000, size, batch),
    "gpt": lambda: transformer(1000, 128, 256, 4, 4, 8, True), "bert": lambda batch=4: transformer(30522, 128, 768, 12, 12, batch, False),
}


def training(name: str, net: tuple[Any, ...]) -> Any:
    """Return a function that runs one step: Adam for the GPT, otherwise SGD with momentum."""
    params, state, forward, x, y = net
    x, y = jnp.asarray(x), jnp.asarray(y)

    def loss(p: Params, s: Params) -> tuple[Array, Params]:
        scores, new = forward(p, s, x, True)
        return -jnp.take_along_axis(jax.nn.log_softmax(scores), y[:, None], 1).mean(), new

    def step(p: Params, s: Params, m: Any, t: Array) -> tuple[Any, ...]:
        (value, s), g = jax.value_and_grad(loss, has_aux=True)(p, s)
        if name == "gpt":
            first = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m[0], g)
            second = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, m[1], g)
            rate = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            return jax.tree.map(lambda a, b, c: a - rate * b / (jnp.sqrt(c) + 1e-8), p, first, second), s, (first, second), t + 1, value
        m = jax.tree.map(lambda a, b: 0.9 * a + b, m, g)
        return jax.tree.map(lambda a, b: a - 0.01 * b, p, m), s, m, t + 1, value

    zeros = jax.tree.map(jnp.zeros_like, params)
    values = [params, state, (zeros, jax.tree.map(jnp.zeros_like, params)) if name == "gpt" else zeros, jnp.asarray(1.0)]
    compiled = jax.jit(step, donate_argnums=(0, 1, 2, 3))

    def run_step() -> Array:
        *values[:], value = compiled(*values)
        return value

    return run_step


def main() -> None:
    """Serve steps; arguments: the net, `step` or `infer`, its sizes as JSON."""
    name, what, sizes = sys.argv[1:]
    net = NETS[name](**json.loads(sizes))
    if what == "step":
        step = training(name, net)
    else:
        params, state, forward, x, _ = net
        compiled, x = jax.jit(lambda p, s, x: forward(p, s, x, False)[0]), jnp.asarray(x)

        def step() -> Array:
            return compiled(params, state, x)

    turns.serve(step, lambda out: out.block_until_ready())


if __name__ == "__main__":
    main()
