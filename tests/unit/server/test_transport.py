"""Calls between processes: small messages are one message each, large ones are streams, and a call that stops in the middle is refused."""
from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("grpc")
from torchspore.distributed.parameter_server import transport
from torchspore.distributed.parameter_server.messages import CHUNK, MalformedMessage
from torchspore.distributed.parameter_server.transport import CallRefused, Channel, ConnectionLost, Listener


def echo(requests: Iterator[bytes]) -> Iterator[bytes]:
    """Answer with the chunks in two parts: the first one, and all others."""
    yield next(requests)
    yield b"".join(requests)


def refuse(requests: Iterator[bytes]) -> Iterator[bytes]:
    next(requests)
    raise ValueError("no step 7 here")
    yield b""


def malformed(requests: Iterator[bytes]) -> Iterator[bytes]:
    next(requests)
    raise MalformedMessage("it has no header")
    yield b""


def slow(requests: Iterator[bytes]) -> Iterator[bytes]:
    yield next(requests)
    time.sleep(5.0)


@pytest.fixture
def channel() -> Iterator[Channel]:
    handlers = {"Echo": echo, "Refuse": refuse, "Malformed": malformed, "Slow": slow}
    listener = Listener(handlers, "127.0.0.1", 0, 8, None, 1.0)
    connection = Channel("127.0.0.1", listener.port, None, 1.0, 5.0)
    connection.wait_until_ready(30.0)
    yield connection
    connection.close()
    listener.stop()


@pytest.mark.parametrize("size", [0, 10, CHUNK - 4, CHUNK, 3 * CHUNK])
@pytest.mark.parametrize("answer_limit", [-1, 0, CHUNK // 2, CHUNK, 10 * CHUNK])
def test_messages_of_any_size_arrive(channel: Channel, size: int, answer_limit: int) -> None:
    if 0 <= answer_limit < size:
        pytest.skip("the answer is larger than its limit")
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    chunks = [b"head", *(body[start:start + CHUNK] for start in range(0, size, CHUNK))]
    received = list(channel.call("Echo", chunks, answer_limit)) if size <= CHUNK else [b"head"]
    assert received[0] == b"head" and b"".join(received[1:]) == (body if size <= CHUNK else b"")


@pytest.mark.parametrize("answer_limit", [-1, 0, CHUNK])
def test_a_refusal_has_the_text_of_the_handler(channel: Channel, answer_limit: int) -> None:
    with pytest.raises(CallRefused, match=r"^no step 7 here$"):
        list(channel.call("Refuse", [b"head"], answer_limit))
    with pytest.raises(CallRefused, match=r"^not a message: it has no header$"):
        list(channel.call("Malformed", [b"head"], answer_limit))


@pytest.mark.parametrize("answer_limit", [-1, 0, CHUNK])
def test_a_cancelled_call_is_lost(channel: Channel, answer_limit: int) -> None:
    call = channel.call("Slow", [b"head"], answer_limit)
    call.cancel()
    with pytest.raises(ConnectionLost):
        list(call)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff\xff\xffabc", b"\x00\x00\x00\x09short"])
def test_a_message_in_one_piece_that_is_too_short_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage, match="shorter than its header"):
        list(transport._unpacked(data))


def test_a_call_that_stops_in_the_middle_is_refused(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setattr(transport, "NEXT_CHUNK", 0.5)
    listener = Listener({"Echo": echo, "Join": echo}, "127.0.0.1", 0, 4, None, 1.0, frozenset({"Join"}))
    connection = Channel("127.0.0.1", listener.port, None, 1.0, 5.0)
    connection.wait_until_ready(30.0)

    def stops() -> Iterator[bytes]:
        yield b"head"
        time.sleep(3.0)
        yield b"late"

    with pytest.raises(ConnectionLost):
        list(connection.call("Echo", stops()))
    assert "no chunk within 0.5 s" in capfd.readouterr().err
    assert list(connection.call("Join", stops())) == [b"head", b"late"]      # a call with an open end may wait
    connection.close()
    listener.stop()
