"""The state of a server on disk, from which a restarted server continues: safetensors files, written beside the old one and renamed."""
from __future__ import annotations

import json
import os
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from torchspore.base.text import message
from torchspore.engine import safetensors_writer


class Snapshots:
    """The snapshot file of one server."""

    def __init__(self, folder: Path, server: int, job: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path, self._job = folder / f"server_{server}.safetensors", job
        self._path_new = folder / f"server_{server}.safetensors.tmp"

    def save(self, tensors: dict[str, torch.Tensor], counts: dict[str, dict[str, int]]) -> None:
        """Write the state after these counts of steps and loads. Raises OSError if the disk is full; the old snapshot stays valid."""
        metadata = {"counts": json.dumps(counts), "job": self._job}
        try:
            safetensors_writer.write({name: t.detach().contiguous() for name, t in tensors.items()}, str(self._path_new), metadata)
        except OSError as error:
            error.filename = str(self._path)
            raise
        with open(self._path_new, "rb") as file:
            os.fsync(file.fileno())
        os.replace(self._path_new, self._path)

    def load(self) -> tuple[dict[str, torch.Tensor], dict[str, dict[str, int]]] | None:
        """Return tensors and counts; None if there is no snapshot of this job. Raises ValueError for a damaged file."""
        if not self._path.exists():
            return None
        try:
            with safe_open(self._path, "pt") as file:
                metadata = file.metadata() or {}
                if metadata.get("job") != self._job:
                    return None
                counts = {str(name): {str(key): int(count) for key, count in group.items()}
                          for name, group in json.loads(metadata["counts"]).items()}
                return {name: file.get_tensor(name) for name in file.keys()}, counts  # noqa: SIM118  it is not a dictionary
        except (SafetensorError, ValueError, KeyError, AttributeError) as error:
            hint = "delete it to start the training again"
            raise ValueError(message(f"{self._path}: {type(error).__name__}: {error}", "a snapshot of a server", hint=hint)) from None

    def remove(self) -> None:
        """Remove the snapshot of a job that has ended."""
        self._path.unlink(missing_ok=True)
