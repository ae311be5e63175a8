"""The sizes of the nets of planning.py and tensor_parallel.py; no torch, no torchspore."""

LAYERS, WIDTH, HEADS, LENGTH, WORDS = 4, 256, 8, 64, 4096
"""The GPT: blocks, values of a word, heads, words of a sequence, words that there are."""
MLP_BATCH, MLP_WIDTH, MLP_DEPTH = 256, 512, 4
"""The other net: rows of a batch, values of a row, pairs of layers."""
