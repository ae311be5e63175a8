"""MindRecord files out of a cloud service: a server on this machine answers as S3's protocol says."""
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.mindrecord import FileWriter

from torchspore.mindspore.dataset.engine import cloud

OBJECTS: dict[str, bytes] = {}
FAILURES: list[int] = []
"""Codes that the next answers have."""


class Bucket(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        url = urlsplit(self.path)
        allowed = "Credential=KEY/" in self.headers["Authorization"] and self._is_signed(url.path, url.query)
        if FAILURES or not allowed:
            return self._answer(FAILURES.pop() if FAILURES else 403, b"")
        if url.query:
            prefix = f"{url.path}/{parse_qs(url.query)['prefix'][0]}"
            return self._answer(200, "".join(f"<Key>{name}</Key>" for name in OBJECTS if name.startswith(prefix)).encode())
        self._answer(200 if url.path in OBJECTS else 404, OBJECTS.get(url.path, b""))

    def _is_signed(self, path: str, query: str) -> bool:
        named = {name: self.headers[name] for name in ("host", "x-amz-content-sha256", "x-amz-date")}
        return self.headers["Authorization"].endswith(cloud.signature("GET", path, query, named, "SECRET", "us-east-1")[2])

    def _answer(self, code: int, content: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("records")
    for number in range(2):
        writer = FileWriter(str(folder / f"part{number}"), 1)
        writer.add_schema({"id": {"type": "int32"}, "name": {"type": "string"}})
        writer.write_raw_data([{"id": 10 * number + row, "name": f"row {row}"} for row in range(3)])
        writer.commit()
    OBJECTS.update({f"/iris/set/{path.name}": path.read_bytes() for path in folder.iterdir()}, **{"/iris/sync/.keep": b""})
    with ThreadingHTTPServer(("127.0.0.1", 0), Bucket) as http_server:
        threading.Thread(target=lambda: http_server.serve_forever(poll_interval=0.01), daemon=True).start()
        yield f"http://127.0.0.1:{http_server.server_port}"
        http_server.shutdown()


FILES = ["s3://iris/set/part0", "s3://iris/set/part1"]


def ids(dataset: ds.Dataset) -> list[int]:
    return [int(row["id"]) for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)]


def test_rows_of_objects(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    FAILURES[:] = [503, 500]                                    # it is asked three times
    dataset = ds.OBSMindDataset(FILES, server, "KEY", "SECRET", "s3://iris/sync", shuffle=False)
    assert ids(dataset) == [0, 1, 2, 10, 11, 12] and len(list(tmp_path.iterdir())) == 1
    assert sorted(ids(ds.OBSMindDataset(FILES, server, "KEY", "SECRET", "s3://iris/sync"))) == [0, 1, 2, 10, 11, 12]
    part = ds.OBSMindDataset(FILES, server, "KEY", "SECRET", "s3://iris/sync", ["id"], False, 2, 1)
    assert ids(part) == [1, 10, 12] and part.get_col_names() == ["id"] and np.int32 in [kind.type for kind in part.output_types()]
    del dataset, part
    assert not list(tmp_path.iterdir()), "what was fetched goes with the dataset"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (([], "K", "S"), ValueError, "expected at least one path"),
        (("s3://iris/set/part0", "KEY", "SECRET"), TypeError, "expected a list of paths, got str"),
        ((["/iris/set/part0"], "KEY", "SECRET"), ValueError, "expected a path such as 's3://bucket/folder/file'"),
        ((FILES, "KEY", "other"), RuntimeError, "hint: look at ak and sk"),
        ((["s3://iris/set/nothing"], "KEY", "SECRET"), RuntimeError, "s3://iris/set/nothing: expected an object of http"),
    ],
)
def test_what_is_refused(server: str, arguments: tuple[object, str, str], error: type[Exception], text: str) -> None:
    files, access, secret = arguments
    with pytest.raises(error, match=text):
        ds.OBSMindDataset(files, server, access, secret, "s3://iris/sync")


def test_missing_paths(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with pytest.raises(RuntimeError, match=r"sync_obs_path='s3://iris/other'\): expected an existing folder"):
        ds.OBSMindDataset(FILES, server, "KEY", "SECRET", "s3://iris/other")
    with pytest.raises(ValueError, match=r"hint: write server='https://obs\.cn-north-4"):
        ds.OBSMindDataset(FILES, "obs.cn-north-4.myhuaweicloud.com", "KEY", "SECRET", "s3://iris/sync")
    with pytest.raises(RuntimeError, match="can not be reached"):
        ds.OBSMindDataset(FILES, "http://127.0.0.1:9", "KEY", "SECRET", "s3://iris/sync")
    for name in ("add_sampler", "use_sampler"):
        with pytest.raises(NotImplementedError, match="expected no sampler"):
            getattr(ds.OBSMindDataset(FILES, server, "KEY", "SECRET", "s3://iris/sync"), name)(None)


def test_the_signature_of_awss_own_example() -> None:
    headers = {
        "host": "examplebucket.s3.amazonaws.com", "range": "bytes=0-9", "x-amz-content-sha256": cloud._EMPTY,
        "x-amz-date": "20130524T000000Z",
    }
    result = cloud.signature("GET", "/test.txt", "", headers, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
    assert result == (
        "20130524/us-east-1/s3/aws4_request", "host;range;x-amz-content-sha256;x-amz-date",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    )
    assert cloud.region_of("https://obs.cn-north-4.myhuaweicloud.com") == "cn-north-4"
