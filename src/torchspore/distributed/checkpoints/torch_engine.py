"""A save by several processes through torch.distributed.checkpoint: a planner and a storage of its interfaces."""
from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, Metadata, MetadataIndex, TensorProperties, TensorStorageMetadata
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, TensorWriteData, WriteItem, WriteItemType
from torch.distributed.checkpoint.state_dict_saver import save as save_together
from torch.distributed.checkpoint.storage import StorageWriter, WriteResult
from torch.futures import Future

from torchspore.base.text import message
from torchspore.distributed.checkpoints import saving
from torchspore.distributed.checkpoints.index import TORCH_TYPES
from torchspore.distributed.checkpoints.saving import CALL, Contents, Description
from torchspore.distributed.comm import groups
from torchspore.errors import CommunicationError


def save(mine: Contents, process_group: Any) -> None:
    """Save the parts of all processes of a group. Raises OSError in every process if one of them can't write."""
    storage = Storage(mine)
    try:
        save_together({}, storage_writer=storage, planner=Planner(mine), process_group=process_group)
    except CheckpointException as error:
        storage.remove_files()
        raise _error_of(error, storage.error) from None


def _error_of(error: CheckpointException, local_error: BaseException | None) -> BaseException:
    """Return this process's own error, or else that of the first process that failed."""
    if local_error is not None:
        return local_error
    rank, (cause, _) = next(iter(sorted(error.failures.items())))
    if rank == groups.rank():
        return cause
    if isinstance(cause, OSError):
        return OSError(cause.errno, f"rank {rank}: {cause.strerror}", cause.filename)
    return CommunicationError(f"{CALL}: rank {rank}: {cause}")


class Planner(SavePlanner):
    """Plans that each process writes its parts, of which no two are equal."""

    def __init__(self, mine: Contents) -> None:
        self._mine = mine

    def set_up_planner(self, state_dict: Any, storage_meta: Any = None, is_coordinator: bool = False) -> None:
        """Needs nothing: the parts are those of the constructor."""

    def create_local_plan(self) -> SavePlan:
        """Return the parts of this process."""
        return SavePlan([_item(described) for described in self._mine.descriptions()], planner_data=self._mine.fingerprint)

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Return the plans and the positions of all parts. Raises CommunicationError if processes save different values."""
        for rank, plan in enumerate(all_plans):
            if plan.planner_data != all_plans[0].planner_data:
                raise CommunicationError(message(
                    f"{CALL}: rank {rank} saves other names than rank 0, or into another folder", "the same call in all processes",
                ))
        stored: dict[str, TensorStorageMetadata] = {}
        for item in (item for plan in all_plans for item in plan.items):
            data = item.tensor_data
            assert data is not None
            stored.setdefault(item.index.fqn, TensorStorageMetadata(data.properties, data.size, [])).chunks.append(data.chunk)
        return all_plans, Metadata(dict(stored))

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Return the plan unchanged."""
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> torch.Tensor:
        """Return the elements of a part."""
        return self._mine.parts[write_item.index.fqn].elements


def _item(described: Description) -> WriteItem:
    offsets = torch.Size(described.offsets)
    chunk = ChunkStorageMetadata(offsets, torch.Size(described.sizes))
    properties = TensorProperties(TORCH_TYPES[described.type_name])
    data = TensorWriteData(chunk, properties, torch.Size(described.shape))
    return WriteItem(MetadataIndex(described.name, offsets), WriteItemType.SHARD, tensor_data=data)


class Storage(StorageWriter):
    """A folder with a file of each process; the index makes it complete."""

    def __init__(self, mine: Contents) -> None:
        self._mine = mine
        self._folder: str | None = None
        """The folder of this save, in the first process."""
        self.error: BaseException | None = None
        """The error of this process. Others get its text: not every error can be pickled."""

    def reset(self, checkpoint_id: Any = None) -> None:
        """Needs nothing: each save has a new object."""

    def set_up_storage_writer(self, is_coordinator: bool, *arguments: Any, **keywords: Any) -> None:
        """Needs nothing."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Return the plan unchanged."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give all processes the name of the folder of this save, and their ranks."""
        self._folder = folder = saving.new_folder()
        return [replace(plan, storage_data=(folder, rank)) for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write this process's file, if it has parts."""
        folder, rank = plan.storage_data
        future: Future[list[WriteResult]] = Future()
        try:
            written = saving.write_parts(self._mine, folder, rank) if plan.items else (0, [])
        except OSError as error:
            self.error = error
            raise OSError(error.errno, error.strerror, error.filename) from None
        except BaseException as error:
            self.error = error
            raise RuntimeError(f"{type(error).__name__}: {error}") from None
        result = (rank, self._mine.descriptions(), written)
        future.set_result([WriteResult(item.index, written[0], result) for item in plan.items[:1]])    # one result for the file
        return future

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the index."""
        saved = [result.storage_data for of_rank in results for result in of_rank]
        assert self._folder is not None
        saving.write_index(self._mine, self._folder, saved)

    def remove_files(self) -> None:
        """Remove the files of a save that failed, in the first process."""
        if self._folder is not None:
            shutil.rmtree(self._mine.path / self._folder, ignore_errors=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Return whether torch may choose this storage for a name; it is always passed instead."""
        return False
