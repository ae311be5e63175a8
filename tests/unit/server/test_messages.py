"""Messages of the parameter server: tensors arrive unchanged, and damaged bytes are refused before memory is allocated for them."""
from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator

import msgpack
import pytest
import torch

from torchspore.distributed.parameter_server.messages import CHUNK, HEADER, MalformedMessage, Message, decode, encode

LIMIT = 1 << 26


def tensors() -> list[torch.Tensor]:
    return [
        torch.arange(6, dtype=torch.float32).view(2, 3), torch.tensor(3, dtype=torch.int64), torch.zeros(0, 4),
        torch.ones(5, dtype=torch.bool), torch.randn(700, 1000), torch.randn(3, 4).to(torch.bfloat16).t(),
    ]


def test_facts_and_tensors_arrive() -> None:
    message = decode(encode(Message({"step": 7, "name": "w"}, tensors())), LIMIT)
    assert message.facts == {"step": 7, "name": "w"}
    for sent, received in zip(tensors()[:4], message.tensors):
        assert sent.dtype == received.dtype and torch.equal(sent, received)
    assert message.tensors[5].shape == (4, 3) and message.tensors[5].dtype == torch.bfloat16
    assert max(map(len, encode(Message({}, tensors())))) <= CHUNK


def test_chunks_may_have_any_sizes() -> None:
    chunks = list(encode(Message({}, tensors())))
    body = b"".join(chunks[1:])

    def cut() -> Iterator[bytes]:
        start = 0
        while start < len(body):
            size = random.randint(1, 1 << 18)
            yield body[start:start + size]
            start += size

    received = decode([chunks[0], *cut()], LIMIT)
    assert torch.equal(received.tensors[0], tensors()[0])


def header(**facts: object) -> bytes:
    return bytes(msgpack.packb(facts))


@pytest.mark.parametrize(("chunks", "text"), [
    ([], "cannot decode the header"), ([b""], "cannot decode the header"), ([b"\xc1"], "cannot decode the header"),
    ([b"GET / HTTP/1.1\r\n"], "cannot decode the header"), ([b"\x00" * 9], "cannot decode the header"),
    ([msgpack.packb([1, 2])], "a header of list"), ([header(step=1)], "the header has no list 'arrays'"),
    ([b"x" * (HEADER + 1)], "the header takes"), ([header(arrays=[1])], "a tensor without dtype and shape"),
    ([header(arrays=[["object", [1]]])], "a tensor without dtype and shape"),
    ([header(arrays=[["float32", [-1]]])], "not a list of lengths"),
    ([header(arrays=[["float32", [1.5]]])], "not a list of lengths"), ([header(arrays=[["float32", [True]]])], "not a list of lengths"),
    ([header(arrays=[["float32", [1] * 17]])], "a tensor without dtype and shape"),
    ([header(arrays=[["float32", [1 << 40]]])], "bytes; the limit is "),
    ([header(arrays=[["float32", [1 << 47, 1 << 47]]])], "bytes; the limit is "),
    ([header(arrays=[["float32", [2]]]), b"1234"], "the message ended after 4 of a tensor's 8 bytes"),
    ([header(arrays=[["float32", [1]]]), b"12345"], "bytes after"),
    ([header(arrays=[["float32", [1]]]), b"1234", b"5"], "bytes after"),
])
def test_damaged_messages_are_refused(chunks: list[bytes], text: str) -> None:
    tracemalloc.start()
    with pytest.raises(MalformedMessage, match=text):
        decode(chunks, LIMIT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * HEADER


def test_random_damage_is_refused_or_read() -> None:
    generator = random.Random(0)
    encoded = list(encode(Message({"step": 3, "rates": [0.1]}, [torch.arange(50.0), torch.arange(3)])))
    outcomes = set()
    for _ in range(3000):
        chunks = [bytearray(chunk) for chunk in encoded]
        chunk = generator.choice(chunks)
        for _ in range(generator.randint(1, 4)):
            chunk[generator.randrange(len(chunk))] = generator.randrange(256)
        if generator.random() < 0.3:
            del chunk[generator.randrange(len(chunk)):]
        try:
            decode(map(bytes, chunks), LIMIT)
            outcomes.add("read")
        except MalformedMessage:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


def test_a_map_of_many_keys_is_refused() -> None:
    with pytest.raises(MalformedMessage):
        decode([msgpack.packb({str(n): n for n in range(1 << 17)})[:HEADER]], LIMIT)
