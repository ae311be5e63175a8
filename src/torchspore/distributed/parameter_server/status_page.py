"""The scheduler's answers by HTTP at `scheduler_manage_port`: `/state` and `/nodes` as JSON. It accepts no other request and no data."""
from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import DEFAULT, STORE

_OPTION = "ps.scheduler_manage_port"


@contextlib.contextmanager
def serving(host: str, describe: Callable[[], dict[str, Any]]) -> Iterator[None]:
    """A block during which the page is served, if the program has set `scheduler_manage_port`.

    `describe` returns {"state": str, "nodes": [...]}. A port in use is reported as an option without effect; the job goes on.
    """
    if STORE.source(_OPTION)[0] == DEFAULT:
        yield
        return
    port = int(STORE.get(_OPTION))
    try:
        server = ThreadingHTTPServer((host, port), _handler(describe))
    except OSError as error:
        effects.report(_OPTION, Outcome.no_effect(f"nothing is served at {host}:{port}: {error.strerror}"))
        yield
        return
    server.daemon_threads = True
    effects.report(_OPTION, Outcome.applied(f"http://{host}:{port}/state and /nodes answer while the job runs"))
    threading.Thread(target=server.serve_forever, daemon=True, name="torchspore status").start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def _handler(describe: Callable[[], dict[str, Any]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5.0

        def do_GET(self) -> None:
            """Answer one request."""
            subject = self.path.strip("/")
            facts = describe()
            if subject not in facts:
                self.send_error(404, "expected /state or /nodes")
                return
            body = json.dumps({subject: facts[subject]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing for a request."""

    return Handler
