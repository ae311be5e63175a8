"""Growth of the memory of each stage of a pipeline: `torchspore workers -n 2 --show all benchmarks/pipeline_memory.py 1f1b`."""
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.communication import get_rank, init

SCHEDULE = sys.argv[1] if len(sys.argv) > 1 else "1f1b"
ROWS, WIDTH, LAYERS, PARTS = 16384, 256, 16, 8


def peak() -> float:
    """Return the peak memory of this process, in MiB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


init()
ms.set_context(mode=ms.GRAPH_MODE)
config = {} if SCHEDULE == "1f1b" else {"pipeline_config": {"pipeline_interleave": True, "pipeline_scheduler": SCHEDULE}}
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch", pipeline_stages=2, **config)
ms.set_seed(1)
cells = [nn.SequentialCell([nn.Dense(WIDTH, WIDTH), nn.Tanh()]) for _ in range(LAYERS)]
for at, cell in enumerate(cells):
    cell.pipeline_stage = at * 2 // LAYERS
net = nn.SequentialCell(cells)
step = nn.TrainOneStepCell(nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), PARTS), nn.SGD(net.trainable_params(), 0.01))
x = Tensor(np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype(np.float32))
before = peak()
for _ in range(3):
    loss = float(step(x, x).asnumpy())
print(f"{SCHEDULE}, stage {get_rank()}: {before:.0f} MiB before, {peak() - before:.0f} MiB more at the peak; loss {loss:.6f}", flush=True)
