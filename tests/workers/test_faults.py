"""What goes wrong between processes is named in every rank, and hangs in none."""
from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

from support.patches import replace

HERE = Path(__file__).name


def _line(text: str) -> str:
    """A message with no numbers that change."""
    return re.sub(r"for \d+\.\d s", "for N s", re.sub(r"[^ ]*/(test_\w+\.py):\d+", r"\1:N", text))


def _start() -> Any:
    import numpy as np
    from mindspore import Tensor, communication, ops

    from torchspore.distributed.comm import watchdog

    replace(watchdog, LATE=0.3, RETRY_SECONDS=0.1)
    communication.init()
    return communication, ops, lambda *shape: Tensor(np.ones(shape, np.float32))


def _other_order() -> None:
    communication, ops, ones = _start()
    ops.AllReduce()(ones(4))
    if communication.get_rank() == 0:
        ops.AllReduce()(ones(4))
        ops.AllGather()(ones(2))
    else:
        ops.AllGather()(ones(2))
        ops.AllReduce()(ones(4))


def test_another_order_is_named_in_both_ranks(workers: Any) -> None:
    first, second = workers.ended(2, _other_order, seconds=20)
    hint = "\n\nhint: every rank of a group must call the same exchanges in the same order, of equal shapes and dtypes."
    assert first.error == second.error == "CommunicationError", (first, second)
    assert _line(first.text) == (
        f"{HERE}:N: rank 0 waits in AllReduce(sum) of float32[4] over world (its number 2) for N s; rank 1 is in AllGather of float32[2] "
        f"over world (its number 2) at {HERE}:N." + hint
    )
    assert _line(second.text) == (
        f"{HERE}:N: rank 1 waits in AllGather of float32[2] over world (its number 2) for N s; rank 0 is in AllReduce(sum) of float32[4] "
        f"over world (its number 2) at {HERE}:N." + hint
    )


def _other_order_begun_early() -> None:
    import mindspore as ms

    communication, ops, ones = _start()
    ms.set_context(mode=ms.GRAPH_MODE)

    class Net(ms.nn.Cell):
        def construct(self, x: Any) -> Any:
            if communication.get_rank():
                return ops.AllGather()(x), ops.AllReduce()(x)
            return ops.AllReduce()(x), ops.AllGather()(x)

    Net()(ones(4))


def test_another_order_of_exchanges_that_are_waited_for_later_is_named(workers: Any) -> None:
    for rank, ended in enumerate(workers.ended(2, _other_order_begun_early, seconds=20)):
        assert ended.error == "CommunicationError", ended
        assert f"rank {rank} " in ended.text and f"rank {1 - rank} " in ended.text, ended.text
        assert "must call the same exchanges in the same order" in ended.text or "is gone" in ended.text, ended.text


def _other_group() -> None:
    communication, ops, ones = _start()
    communication.create_group("first", [0, 1])
    communication.create_group("second", [0, 1])
    for name in ("first", "second") if communication.get_rank() == 0 else ("second", "first"):
        ops.AllReduce(group=name)(ones(4))


def test_groups_in_another_order_are_named(workers: Any) -> None:
    for ended in workers.ended(2, _other_group, seconds=20):
        assert ended.error == "CommunicationError" and "over first (its number 1)" in ended.text
        assert "over second (its number 1)" in ended.text, ended.text


def _nobody_sends() -> None:
    communication, ops, ones = _start()
    from mindspore.mint import distributed

    if communication.get_rank() == 0:
        distributed.recv(ones(2), 1)
    else:
        ops.AllReduce()(ones(4))


def test_a_receive_that_nobody_sends_to_is_named(workers: Any) -> None:
    first, second = workers.ended(2, _nobody_sends, seconds=20)
    assert "rank 0 waits in Receive of float32[2] from rank 1" in first.text and "rank 1 is in AllReduce(sum)" in first.text, first
    assert "rank 1 waits in AllReduce(sum)" in second.text and "rank 0 is in Receive of float32[2] from rank 1" in second.text, second


def _waits_no_more() -> Any:
    import threading

    communication, ops, ones = _start()
    from mindspore.mint import distributed

    from torchspore.distributed.comm import groups

    try:
        distributed.recv(ones(2), 1) if communication.get_rank() == 0 else ops.AllReduce()(ones(4))
    except RuntimeError:
        groups.stop()
    return [thread.name for thread in threading.enumerate() if thread.name == "torchspore pairs"]


def test_no_thread_waits_for_gloo_when_python_ends(workers: Any) -> None:
    assert workers(2, _waits_no_more, seconds=20) == [[], []]            # it would come back too late, and end the process by SIGABRT


def _killed() -> Any:
    import os
    import signal
    import time

    communication, ops, ones = _start()
    ops.AllReduce()(ones(4))
    if communication.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic()
    try:
        ops.AllReduce()(ones(4))
    except RuntimeError as error:
        return time.monotonic() - begun, str(error)


def test_a_killed_rank_is_noticed_and_named(workers: Any) -> None:
    first, second = workers.ended(2, _killed, seconds=20)
    assert second.code == -9 and first.error is None
    seconds, text = first.value
    assert seconds < 1.0 and "rank 0 was in AllReduce(sum) of float32[4] over world (its number 2) when rank 1 is gone." in text, text


def _hung() -> Any:
    import time

    communication, ops, ones = _start()
    from torchspore.distributed.comm import watchdog

    assert watchdog.watch is not None
    replace(watchdog.watch, seconds=1.5)
    if communication.get_rank() == 1:
        time.sleep(3)
        return None
    ops.AllReduce()(ones(4))
    return None


def test_a_hung_rank_is_named_with_its_line(workers: Any) -> None:
    first, _ = workers.ended(2, _hung, seconds=20)
    assert first.error == "CommunicationError"
    assert re.search(r"that is more than 1.5 s\. rank 1 has not come to it: it is at .*test_faults\.py:\d+\.$", first.text), first.text


def _slow() -> Any:
    import time

    communication, ops, ones = _start()
    from torchspore.distributed.comm import hang_report, watchdog

    assert watchdog.watch is not None
    replace(hang_report, LIMITS=(2.5, 60.0))
    replace(watchdog.watch, seconds=30.0)
    if communication.get_rank() == 1:
        time.sleep(6)
    return ops.AllReduce()(ones(4)).asnumpy().tolist()


def test_a_slow_rank_is_reported_on_both_ranks_while_the_job_goes_on(workers: Any) -> None:
    first, second = workers.ended(2, _slow, seconds=40)
    assert first.value == second.value == [2.0] * 4
    assert re.search(
        r"test_faults\.py:\d+: rank 0 has waited \d s in AllReduce\(sum\) of float32\[4\] over world \(its number 1\); "
        r"rank 1 has not come to it: it is at .*test_faults\.py:\d+\. The wait fails after 30 s \(MS_TOPO_TIMEOUT\), "
        r"or at the limit that set_context\(op_timeout=SECONDS\) sets\.\n", first.out), first.out
    assert re.search(
        r"test_faults\.py:\d+: rank 1 is here, while rank 0 has waited \d s for it in AllReduce\(sum\) of float32\[4\] over world "
        r"at .*test_faults\.py:\d+\.\n", second.out), second.out
    assert first.out.count("has waited") == second.out.count("has waited") == 1


def _leaves_early() -> Any:
    import os
    import time

    from torchspore.distributed.comm import groups
    from torchspore.engine.torch_internals import torch_process_groups

    connect = torch_process_groups.start_processes

    def slowly(*args: Any, **kwargs: Any) -> None:
        connect(*args, **kwargs)
        time.sleep(0.8)

    if os.environ["RANK"] == "0":
        replace(torch_process_groups, start_processes=slowly)                       # as if its machine were busy
    groups.start()
    begun = time.monotonic()
    groups.stop()
    return time.monotonic() - begun


def test_who_leaves_early_lets_the_others_connect(workers: Any) -> None:
    assert workers(2, _leaves_early, seconds=20)[1] > 0.3      # gloo told the other that this one was gone


def _pressed() -> Any:
    import os
    import signal
    import threading
    import time

    communication, ops, ones = _start()

    from torchspore.distributed.comm import watchdog

    replace(watchdog, LATE=10.0)
    ops.AllReduce()(ones(4))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if communication.get_rank() == 1:
        time.sleep(2.5)
        return None
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    try:
        ops.AllReduce()(ones(4))
    except KeyboardInterrupt:
        return time.monotonic() - begun


def test_ctrl_c_is_heard_in_an_exchange(workers: Any) -> None:
    first, _ = workers.ended(2, _pressed, seconds=20)
    assert first.value is not None and first.value < 1.5, first


def _leaves() -> Any:
    communication, ops, ones = _start()
    if communication.get_rank() == 1:
        return None
    ops.AllReduce()(ones(4))
    return None


def test_a_rank_that_ended_is_named(workers: Any) -> None:
    first, _ = workers.ended(2, _leaves, seconds=20)
    assert first.error == "CommunicationError" and "rank 1" in first.text, first.text


def _none_there() -> None:
    from mindspore import communication

    communication.init()


def test_nobody_at_the_address(workers: Any) -> None:
    (ended,) = workers.ended(
        1, _none_there, seconds=20, WORLD_SIZE="2", RANK="1", MASTER_PORT="9", TORCHELASTIC_USE_AGENT_STORE="<unset>", MS_TOPO_TIMEOUT="1",
    )
    assert ended.error == "RendezvousError" and ended.text == (
        "init(): rank 1 found no process at 127.0.0.1:9 within 1 s.\n\nhint: rank 0 must run and be reachable there; MS_TOPO_TIMEOUT, or "
        "--cluster_time_out, says how many seconds to wait."
    ), ended
    assert ended.seconds < 5


def test_an_address_of_rank_0_of_another_machine(workers: Any) -> None:
    (ended,) = workers.ended(
        1, _none_there, seconds=20, WORLD_SIZE="2", RANK="0", MASTER_ADDR="no.such.host", MASTER_PORT="29617",
        TORCHELASTIC_USE_AGENT_STORE="<unset>", MS_TOPO_TIMEOUT="1",
    )
    assert ended.text == (
        "init() in rank 0 of 2: rank 1 did not come within 1 s.\n\nhint: no.such.host:29617 is unreachable: the address must be one of "
        "the machine that rank 0 runs on."
    ), ended
    assert ended.out == "" and ended.seconds < 5, ended              # torch wrote pages about its attempts


def test_an_address_where_something_else_listens(workers: Any) -> None:
    import socket
    import threading

    def answer(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                with server.accept()[0] as connection:
                    connection.recv(100)
                    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        port = str(server.getsockname()[1])
        (ended,) = workers.ended(
            1, _none_there, seconds=20, WORLD_SIZE="2", RANK="1", MASTER_PORT=port, TORCHELASTIC_USE_AGENT_STORE="<unset>",
            MS_TOPO_TIMEOUT="1",
        )
    assert ended.text.startswith(f"init(): 127.0.0.1:{port} is in use by another program than a torchspore run."), ended
    assert ended.out == "", ended


def test_a_port_in_use(workers: Any) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        (ended,) = workers.ended(
            1, _none_there, seconds=20, WORLD_SIZE="2", RANK="0", MASTER_PORT=port, TORCHELASTIC_USE_AGENT_STORE="<unset>",
        )
    assert ended.text == (
        f"init(): rank 0 can't listen at 127.0.0.1:{port}: the port is in use.\n\n"
        "hint: another run may still be there; choose another port (MASTER_PORT, --master_port)."
    ), ended


def _other_context() -> None:
    import os

    import mindspore as ms
    from mindspore import communication

    if os.environ["RANK"] == "1":
        ms.set_auto_parallel_context(gradients_mean=True)
    else:
        ms.set_auto_parallel_context(loss_repeated_mean=True)         # its default, said aloud: no difference
    ms.set_auto_parallel_context(global_rank=int(os.environ["RANK"]))
    communication.init()


def test_another_context_is_reported_in_every_rank(workers: Any) -> None:
    for rank, ended in enumerate(workers.ended(2, _other_context, seconds=20)):
        assert ended.text == (
            f"init() in rank {rank} of 2: the processes differ.\nset_auto_parallel_context(gradients_mean): False in rank 0; True in "
            "rank 1\n\nhint: start one program with one context in all of them."
        ), ended


def _other_program() -> None:
    import os
    import sys
    from types import ModuleType

    from mindspore import communication

    program = ModuleType("__main__")
    program.__file__ = __file__ if os.environ["RANK"] == "1" else os.__file__
    sys.modules["__main__"] = program
    communication.init()


def test_another_program_is_reported_in_every_rank(workers: Any) -> None:
    for ended in workers.ended(2, _other_program, seconds=20):
        assert re.search(r"the program: os\.py \w{12} in rank 0; test_faults\.py \w{12} in rank 1", ended.text), ended


def test_a_rank_that_never_comes_is_named(workers: Any) -> None:
    (ended,) = workers.ended(1, _none_there, seconds=20, WORLD_SIZE="3", MS_TOPO_TIMEOUT="1")
    assert ended.text == (
        "init() in rank 0 of 3: rank 1, 2 did not come within 1 s.\n\nhint: look at its output; MS_TOPO_TIMEOUT sets another limit."
    )


def test_a_rank_out_of_range(workers: Any) -> None:
    (ended,) = workers.ended(1, _none_there, seconds=20, WORLD_SIZE="2", RANK="2")
    assert ended.error == "ValueError" and ended.text == "RANK, WORLD_SIZE: rank 2 of 2 processes: expected a rank from 0 to 1."
