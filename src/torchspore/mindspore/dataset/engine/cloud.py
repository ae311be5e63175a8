"""Objects of services that speak S3's protocol (OBS, MinIO, AWS): fetched by signed requests, with Python's standard library."""
from __future__ import annotations

import datetime
import hashlib
import hmac
import http.client
import re
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from torchspore.base.files import atomic_file
from torchspore.base.text import message, short

_EMPTY = hashlib.sha256(b"").hexdigest()
_TRIES = 3
_PATIENCE = 60.0
"""Seconds without a byte after which a request has failed."""
_PAUSE = 0.5
"""Seconds before a retry."""

_Result = TypeVar("_Result")


def bucket_and_key(call: str, path: str) -> tuple[str, str]:
    """Return the parts of s3://bucket/key. Raises ValueError for another kind of path."""
    match = re.fullmatch(r"s3://([^/]+)(?:/(.*))?", path)
    if match is None:
        raise ValueError(message(f"{call}({short(path)})", "a path such as 's3://bucket/folder/file'"))
    return match[1], match[2] or ""


def region_of(server: str) -> str:
    """Return the region in a server's name, `us-east-1` if it has none."""
    host = urllib.parse.urlsplit(server).hostname or ""
    match = re.match(r"(?:obs|s3)[.-]([a-z]+-[a-z]+-\d+)\.", host)
    return match[1] if match is not None else "us-east-1"


def signature(
    method: str, path: str, query: str, headers: dict[str, str], secret: str, region: str, *, content: str = _EMPTY,
) -> tuple[str, str, str]:
    """Return (the scope, the names of the signed headers, the signature) of a request, by AWS's signature version 4."""
    moment = headers["x-amz-date"]
    names = ";".join(sorted(headers))
    lines = [method, path, query, *(f"{name}:{headers[name].strip()}" for name in sorted(headers)), "", names, content]
    scope = f"{moment[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256("\n".join(lines).encode()).hexdigest()])
    key = b"AWS4" + secret.encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return scope, names, hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Service:
    """A server with the keys of an account."""

    call: str
    server: str
    access_key: str
    secret_key: str

    def fetch(self, path: str, target: Path) -> None:
        """Write an object into the file `target`, completely or not at all. Raises RuntimeError, which names the object."""
        bucket, key = bucket_and_key(self.call, path)

        def fetched() -> None:
            with self._open(path, bucket, key) as answer, atomic_file(target) as file:
                shutil.copyfileobj(answer, file, 1 << 20)
                _check_length(answer, file.tell())

        self._patiently(path, fetched)

    def has(self, path: str) -> bool:
        """Return whether an object of this name, or one in a folder of this name, exists. Raises RuntimeError if the server refuses."""
        bucket, key = bucket_and_key(self.call, path)

        def exists() -> bool:
            with self._open(path, bucket, "", {"list-type": "2", "max-keys": "1", "prefix": key}) as answer:
                return b"<Key>" in answer.read(1 << 16)

        return self._patiently(path, exists)

    def _patiently(self, path: str, ask: Callable[[], _Result]) -> _Result:
        for remaining_tries in reversed(range(_TRIES)):
            try:
                return ask()
            except (ConnectionError, TimeoutError, http.client.HTTPException) as error:
                if not remaining_tries:
                    raise RuntimeError(message(f"{self.call}: {path}: {error}", f"an answer of {self.server}")) from None
                time.sleep(_PAUSE)
        raise AssertionError("the last try returns or raises")

    def _open(self, shown: str, bucket: str, key: str, query: dict[str, str] | None = None) -> Any:
        parts = urllib.parse.urlsplit(self.server)
        path = urllib.parse.quote(f"{parts.path.rstrip('/')}/{bucket}/{key}".rstrip("/") or "/", safe="/-_.~")
        query_string = "&".join(f"{name}={urllib.parse.quote(value, safe='-_.~')}" for name, value in sorted((query or {}).items()))
        moment = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        headers = {"host": parts.netloc, "x-amz-content-sha256": _EMPTY, "x-amz-date": moment}
        scope, names, signed = signature("GET", path, query_string, headers, self.secret_key, region_of(self.server))
        credential = f"Credential={self.access_key}/{scope}, SignedHeaders={names}, Signature={signed}"
        url = f"{parts.scheme}://{parts.netloc}{path}{'?' if query_string else ''}{query_string}"
        request = urllib.request.Request(url, headers={**headers, "Authorization": f"AWS4-HMAC-SHA256 {credential}"})
        try:
            return urllib.request.urlopen(request, timeout=_PATIENCE)
        except urllib.error.HTTPError as error:
            error.close()
            raise self._refused(shown, error.code) from None
        except urllib.error.URLError as error:
            raise ConnectionError(f"{self.server} can not be reached: {error.reason}") from None

    def _refused(self, path: str, code: int) -> Exception:
        if code >= 500:
            return ConnectionError(f"the server's answer was {code}")
        subject = f"{self.call}: {path}"
        if code in (401, 403):
            return RuntimeError(message(subject, f"keys that may read it; {self.server} refuses these", hint="look at ak and sk"))
        if code == 404:
            return RuntimeError(message(subject, f"an object of {self.server}; there is none"))
        return RuntimeError(message(subject, f"an object; the answer of {self.server} was {code}"))


def _check_length(answer: Any, got: int) -> None:
    promised = answer.headers.get("Content-Length")
    if promised is not None and int(promised) != got:
        raise ConnectionError(f"the server promised {promised} bytes and sent {got}")
