"""The mode of a program of this folder: MODE is PYNATIVE or GRAPH, LEVEL a jit_level."""
import os

import mindspore as ms

IS_GRAPH = os.environ.get("MODE", "PYNATIVE") == "GRAPH"
ms.set_context(mode=ms.GRAPH_MODE if IS_GRAPH else ms.PYNATIVE_MODE)
if os.environ.get("LEVEL"):
    ms.set_context(jit_config={"jit_level": os.environ["LEVEL"]})
EPOCHS = 3
