"""The transport between the processes of a parameter server: streams of bytes over gRPC, with TLS if it is enabled.

`Listener` and `Channel` are all that the rest of the package uses, so that a cluster with another network can have another transport. gRPC
has flow control, TLS that verifies both sides, and pings that its C threads answer while Python computes; `benchmarks/transports.py`
compares it with others. Each method is one stream of chunks in each direction. A chunk has at most `messages.CHUNK` bytes.
"""
from __future__ import annotations

import itertools
import os
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

from torchspore.base.text import message, with_hint
from torchspore.context.store import STORE
from torchspore.distributed.parameter_server.configuration import Credentials
from torchspore.distributed.parameter_server.messages import CHUNK, HEADER, MalformedMessage
from torchspore.errors import CommunicationError

Handler = Callable[[Iterator[bytes]], Iterator[bytes]]
"""Answers a stream of chunks by another one. Raises MalformedMessage for chunks that are not a message."""
_SERVICE = "torchspore.ParameterServer"
_SMALL_REQUEST, _SMALL = "OfOneMessage", "InOneMessage"
"""The ends of the names of methods whose request, or whose request and answer, are one message of at most CHUNK bytes."""
_SLACK = 4096
"""Bytes that a frame may have apart from its chunk."""
PING_TIMEOUT = 1.0
"""Seconds after which an unanswered ping means that the other process is lost."""


NEXT_CHUNK = 10.0
"""The seconds that a call may take to send its next chunk; calls that stop in the middle would occupy all threads."""


class ConnectionLost(RuntimeError):
    """The other process has ended or does not answer."""


class CallRefused(ConnectionLost):
    """The other process answered the call with an error; the text is its message."""


def _grpc() -> Any:
    """Import grpc. Raises RuntimeError if it is not installed."""
    # With TLS, gRPC's C code reports each refused certificate; without it, it would print lines about each lost connection.
    os.environ.setdefault("GRPC_VERBOSITY", "INFO" if STORE.get("ps.enable_ssl") else "NONE")
    try:
        import grpc
    except ImportError:
        raise RuntimeError(message(
            "set_ps_context(enable_ps=True) without the package grpcio", "the package", hint="pip install 'torchspore[server]'",
        )) from None
    return grpc


def _options(heartbeat: float) -> list[tuple[str, int]]:
    """Return gRPC's settings: bounded sizes, and a ping each `heartbeat` seconds on every connection."""
    milliseconds = max(10, int(1000 * heartbeat))
    return [
        ("grpc.max_receive_message_length", max(CHUNK, HEADER) + _SLACK), ("grpc.max_send_message_length", max(CHUNK, HEADER) + _SLACK),
        ("grpc.max_metadata_size", 8192), ("grpc.so_reuseport", 0), ("grpc.max_concurrent_streams", 256),
        ("grpc.keepalive_time_ms", milliseconds), ("grpc.keepalive_timeout_ms", int(1000 * PING_TIMEOUT)),
        ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0), ("grpc.http2.max_ping_strikes", 0),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", milliseconds // 2), ("grpc.server_handshake_timeout_ms", 10_000),
        ("grpc.http2.min_sent_ping_interval_without_data_ms", milliseconds), ("grpc.enable_http_proxy", 0),
        ("grpc.http2.ping_timeout_ms", int(1000 * PING_TIMEOUT)), ("grpc.http2.min_time_between_pings_ms", milliseconds),
    ]


class _ChunkTimer:
    """Cancels calls that do not send their next chunk in time. One thread serves all calls of a listener."""

    def __init__(self) -> None:
        self._limits: dict[Any, float] = {}
        self._is_stopped = threading.Event()
        threading.Thread(target=self._run, daemon=True, name="torchspore chunk timer").start()

    def limited(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """Yield the chunks of a call; cancel the call if one of them is late."""
        while True:
            self._limits[context] = time.monotonic() + NEXT_CHUNK
            try:
                chunk = next(requests, None)
            finally:
                self._limits.pop(context, None)
            if chunk is None:
                return
            yield chunk

    def _run(self) -> None:
        while not self._is_stopped.wait(0.5):
            now = time.monotonic()
            for context in [context for context, limit in list(self._limits.items()) if limit < now]:
                if self._limits.pop(context, None) is not None:
                    print(f"torchspore: refused {context.peer()}: no chunk within {NEXT_CHUNK:g} s.", file=sys.stderr, flush=True)
                    context.cancel()

    def stop(self) -> None:
        """End the thread."""
        self._is_stopped.set()


class Listener:
    """Answers calls of other processes at a port.

    `host` and `port` are the address; port 0 is any free port. `threads` is the number of calls that run at the same time. Calls of the
    methods in `open_ended` may send their chunks after the first one at any time. Raises CommunicationError if the port cannot be used.
    """

    def __init__(
        self, handlers: dict[str, Handler], host: str, port: int, threads: int, credentials: Credentials | None, heartbeat: float,
        open_ended: frozenset[str] = frozenset(),
    ) -> None:
        grpc = _grpc()
        self._timer = _ChunkTimer()
        self._revoked = frozenset() if credentials is None else credentials.revoked
        self._server = grpc.server(futures.ThreadPoolExecutor(threads, "torchspore server"), options=_options(heartbeat))
        methods = {}
        for name, handler in handlers.items():
            methods[name] = grpc.stream_stream_rpc_method_handler(self._answer(handler, name in open_ended))
            if name not in open_ended:
                methods[name + _SMALL_REQUEST] = grpc.unary_stream_rpc_method_handler(self._answer(handler, False, True))
                methods[name + _SMALL] = grpc.unary_unary_rpc_method_handler(self._answer_small(handler))
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, methods),))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if credentials is None:
                self.port = self._server.add_insecure_port(address)
            else:
                pairs = [(credentials.key, credentials.certificate)]
                secure = grpc.ssl_server_credentials(pairs, root_certificates=credentials.authority, require_client_auth=True)
                self.port = self._server.add_secure_port(address, secure)
        except RuntimeError:
            raise CommunicationError(with_hint(
                f"the parameter server can't listen at {host}:{port}: the port is in use, or the address is not of this machine.",
                "choose another MS_SCHED_PORT",
            )) from None
        self._server.start()

    def _answer_small(self, handler: Handler) -> Any:
        answer = self._answer(handler, False, True)
        return lambda request, context: _packed(list(answer(request, context)))

    def _answer(self, handler: Handler, is_open_ended: bool, is_packed: bool = False) -> Any:
        grpc = _grpc()

        def answer(requests: Any, context: Any) -> Iterator[bytes]:
            if self._revoked and _serial_number(context) in self._revoked:
                print(f"torchspore: refused {context.peer()}: its certificate is revoked.", file=sys.stderr, flush=True)
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "the certificate of this process is revoked")
            limited = self._timer.limited(requests, context)
            try:
                if is_packed:
                    yield from handler(_unpacked(requests))
                elif is_open_ended:
                    first = next(limited, b"")
                    yield from handler(itertools.chain((first,), requests))
                else:
                    yield from handler(limited)
            except MalformedMessage as error:
                print(f"torchspore: refused {context.peer()}: {error}.", file=sys.stderr, flush=True)
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"not a message: {error}")
            except (CommunicationError, ValueError) as error:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))

        return answer

    def stop(self) -> None:
        """End all calls and close the port."""
        self._timer.stop()
        self._server.stop(0.5).wait(2.0)


def _serial_number(context: Any) -> int:
    from cryptography import x509

    certificates = context.auth_context().get("x509_pem_cert") or [b""]
    return x509.load_pem_x509_certificate(certificates[0]).serial_number if certificates[0] else -1


class Channel:
    """A connection to the listener of another process. Raises CommunicationError if TLS refuses one of the two certificates."""

    def __init__(self, host: str, port: int, credentials: Credentials | None, heartbeat: float, seconds: float) -> None:
        self._grpc, options = _grpc(), _options(heartbeat)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if credentials is None:
            self._channel = self._grpc.insecure_channel(address, options=options)
        else:
            name = _verified_name(host, port, credentials, seconds)
            secure = self._grpc.ssl_channel_credentials(credentials.authority, credentials.key, credentials.certificate)
            self._channel = self._grpc.secure_channel(address, secure, options=[*options, ("grpc.ssl_target_name_override", name)])

    def wait_until_ready(self, seconds: float) -> None:
        """Wait for the connection. Raises ConnectionLost after `seconds`."""
        try:
            self._grpc.channel_ready_future(self._channel).result(seconds)
        except self._grpc.FutureTimeoutError:
            raise ConnectionLost(f"no answer within {seconds:g} s") from None

    def call(self, method: str, chunks: Iterable[bytes], answer_limit: int = -1) -> Call:
        """Start a call of a method that is answered by at most `answer_limit` bytes of tensors; -1 for a method with an open end.

        A small request and its small answer are one message each, which takes a third of the time of streams.
        """
        first = list(_until(chunks := iter(chunks), CHUNK)) if answer_limit >= 0 else []
        if answer_limit < 0 or sum(map(len, first)) > CHUNK:
            return Call(self._grpc, self._channel.stream_stream(f"/{_SERVICE}/{method}")(itertools.chain(first, chunks)))
        if answer_limit > CHUNK // 2:
            return Call(self._grpc, self._channel.unary_stream(f"/{_SERVICE}/{method}{_SMALL_REQUEST}")(_packed(first)))
        future = self._channel.unary_unary(f"/{_SERVICE}/{method}{_SMALL}").future(_packed(first))
        return Call(self._grpc, future, _result_of(future))

    def close(self) -> None:
        """Cancel all calls and close the connection."""
        self._channel.close()


class Call:
    """A running call: an iterator over the chunks of the answer, which raises ConnectionLost."""

    def __init__(self, grpc: Any, call: Any, chunks: Iterator[bytes] | None = None) -> None:
        self._grpc, self._call, self._chunks = grpc, call, call if chunks is None else chunks

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return bytes(next(self._chunks))
        except self._grpc.RpcError as error:
            raise _translated(self._grpc, error) from None
        except self._grpc.FutureCancelledError:
            raise ConnectionLost("the call was cancelled") from None

    def cancel(self) -> None:
        """End the call; a thread that waits for its next chunk gets ConnectionLost."""
        self._call.cancel()


def _result_of(future: Any) -> Iterator[bytes]:
    """Yield the chunks of an answer that is one message."""
    yield from _unpacked(future.result())


def _until(chunks: Iterator[bytes], limit: int) -> Iterator[bytes]:
    """Yield chunks until they have more than `limit` bytes together; the iterator has the others."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        yield chunk
        if size > limit:
            return


def _packed(chunks: list[bytes]) -> bytes:
    """Return the chunks of a small message as one: the length of the header, the header, the tensors."""
    return b"".join((len(chunks[0]).to_bytes(4, "big"), *chunks))


def _unpacked(data: bytes) -> Iterator[bytes]:
    """Yield the header and the tensors of a message in one piece. Raises MalformedMessage."""
    size = int.from_bytes(data[:4], "big")
    if len(data) < 4 + size:
        raise MalformedMessage("a message that is shorter than its header")
    yield data[4:4 + size]
    if len(data) > 4 + size:
        yield data[4 + size:]


def _translated(grpc: Any, error: Any) -> ConnectionLost:
    code = error.code()
    if code in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.INVALID_ARGUMENT):
        return CallRefused(str(error.details()))
    texts = {grpc.StatusCode.UNAVAILABLE: "the connection is lost", grpc.StatusCode.CANCELLED: "the call was cancelled"}
    return ConnectionLost(texts.get(code, f"{code.name}: {error.details()}"))


def _verified_name(host: str, port: int, credentials: Credentials, seconds: float) -> str:
    """Connect once by TLS, to verify the certificate of the listener; return its host name. Raises CommunicationError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=credentials.authority.decode())
    context.set_alpn_protocols(["h2"])
    with tempfile.TemporaryDirectory(prefix="torchspore_tls_") as folder:         # Python's ssl reads keys from files only
        path = Path(folder) / "key.pem"
        path.touch(mode=0o600)
        path.write_bytes(credentials.key + credentials.certificate)
        context.load_cert_chain(path)
    from torchspore.distributed.comm import peer_liveness

    try:
        peer_liveness.wait_until_listening(host, port, seconds)
        with socket.create_connection((host, port), seconds) as plain, context.wrap_socket(plain, server_hostname=host) as secure:
            certificate = secure.getpeercert(binary_form=True)
            secure.settimeout(seconds)
            secure.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")       # the client's preface, RFC 9113
            if not secure.recv(1):                               # TLS 1.3 refuses the client's certificate after the handshake
                raise ssl.SSLError("the listener closed the connection")
    except ssl.SSLError as error:
        raise CommunicationError(with_hint(
            f"the TLS connection to {host}:{port} was refused: {getattr(error, 'verify_message', '') or error.reason or error}.",
            "both sides need certificates that the authority in ca_cert_path has signed, and enable_ssl=True",
        )) from None
    except OSError as error:
        raise CommunicationError(f"no TLS connection to {host}:{port}: {error.strerror or error}.") from None
    return _name_in(certificate or b"", credentials, f"{host}:{port}")


def _name_in(certificate: bytes, credentials: Credentials, where: str) -> str:
    from cryptography import x509

    from torchspore.distributed.parameter_server.configuration import host_name

    parsed = x509.load_der_x509_certificate(certificate)
    if parsed.serial_number in credentials.revoked:
        raise CommunicationError(f"the TLS connection to {where} was refused: the certificate of the listener is revoked.")
    return host_name(parsed)
