"""Rows of MindRecord files in a cloud service."""
from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from torchspore.base.text import message, short
from torchspore.context import effects
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_shards, check_type
from torchspore.mindspore.dataset.engine.datasets_records import MindDataset
from torchspore.mindspore.dataset.engine.samplers import Shuffle

if TYPE_CHECKING:
    from torchspore.mindspore.dataset.engine.cloud import Service

_CALL = "OBSMindDataset"


class OBSMindDataset(MindDataset):
    """The rows of MindRecord files in OBS, MinIO or S3, named as ['s3://bucket/folder/file', ...].

    When the dataset is created, each process downloads the files with their indices (`.db`) into a separate folder below `TMPDIR`, which
    is deleted with the dataset. Processes do not wait for each other, so that nothing is written to `sync_obs_path`. Raises RuntimeError
    if the server, the keys, an object or `sync_obs_path` is missing, and the errors of MindDataset.
    """

    def __init__(
        self, dataset_files: list[str], server: str, ak: str, sk: str, sync_obs_path: str, columns_list: list[str] | None = None,
        shuffle: Any = Shuffle.GLOBAL, num_shards: int | None = None, shard_id: int | None = None, shard_equal_rows: bool = True,
    ) -> None:
        check_type(_CALL, "dataset_files", dataset_files, list, "a list of paths")
        if not dataset_files:
            raise ValueError(message(f"{_CALL}(dataset_files=[])", "at least one path"))
        for path in dataset_files:
            check_type(_CALL, "dataset_files", path, str, "a list of str")
        for name, value in (("server", server), ("ak", ak), ("sk", sk), ("sync_obs_path", sync_obs_path)):
            check_type(_CALL, name, value, str, "a str")
        if not server.startswith(("http://", "https://")):
            raise ValueError(message(f"{_CALL}(server={short(server)})", "an address", hint=f"write server='https://{server}'"))
        check_bool(_CALL, "shard_equal_rows", shard_equal_rows)
        check_shards(_CALL, num_shards, shard_id)
        from torchspore.mindspore.dataset.engine.cloud import Service  # the HTTP client is imported when it is needed

        service = Service(_CALL, server, ak, sk)
        if not service.has(sync_obs_path):
            raise RuntimeError(message(f"{_CALL}(sync_obs_path={sync_obs_path!r})", "an existing folder"))
        effects.note("data", f"{_CALL}(sync_obs_path=...): each process fetches the files by itself; there is nothing to synchronize")
        if num_shards is not None and not shard_equal_rows:
            effects.note("data", f"{_CALL}(shard_equal_rows=False): the shares are as long as one another all the same")
        folder = Path(tempfile.mkdtemp(prefix="torchspore-obs-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        super().__init__(
            [str(_fetched(service, path, folder / str(number))) for number, path in enumerate(dataset_files)], columns_list, None, shuffle,
            num_shards, shard_id,
        )

    def add_sampler(self, new_sampler: Any) -> NoReturn:
        """Raises NotImplementedError, as MindSpore's does."""
        raise NotImplementedError(message(f"{_CALL}.add_sampler", "no sampler; the order follows from shuffle and num_shards"))

    def use_sampler(self, new_sampler: Any) -> NoReturn:
        """Raises NotImplementedError, as MindSpore's does."""
        raise NotImplementedError(message(f"{_CALL}.use_sampler", "no sampler; the order follows from shuffle and num_shards"))


def _fetched(service: Service, path: str, folder: Path) -> Path:
    """Download the file of an object, with its index next to it."""
    folder.mkdir()
    target = folder / (path.rpartition("/")[2] or "records")
    for end in ("", ".db"):
        service.fetch(path + end, target.with_name(target.name + end))
    return target
