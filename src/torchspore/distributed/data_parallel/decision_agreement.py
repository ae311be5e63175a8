"""Compares decisions that each process makes and all must make alike: to end the training, to lower the learning rate."""
from __future__ import annotations

from torchspore.base.text import message
from torchspore.distributed.data_parallel import settings
from torchspore.errors import CommunicationError

_LONGEST = 160
_HINT = "evaluate the same data in all processes, or use a number that is equal in all of them, such as its mean (ops.AllReduce)"


def check_agreement(call: str, decision: str) -> None:
    """Raise CommunicationError in all processes that train together if the texts of their decisions differ.

    Without the check, weights would drift apart unnoticed, or processes would wait for one that has ended.
    """
    if settings.mode() == "stand_alone" or settings.processes() == 1:
        return
    import torch

    from torchspore.distributed.comm import collectives, groups

    collectives.meet(f"{call}, which decides for all", groups.world())
    encoded = decision.encode()[:_LONGEST].ljust(_LONGEST)
    rows = collectives.all_gather(torch.frombuffer(bytearray(encoded), dtype=torch.uint8), groups.world()).view(-1, _LONGEST)
    decisions = [bytes(row.tolist()).decode(errors="replace").strip() for row in rows.cpu()]
    if len(set(decisions)) > 1:
        each = ", ".join(f"rank {decisions.index(text)} {text}" for text in dict.fromkeys(decisions))
        raise CommunicationError(message(f"{call}: {each}", "one decision in all processes that train together", hint=_HINT))
