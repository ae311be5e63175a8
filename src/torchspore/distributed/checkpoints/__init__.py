"""Checkpoints in a folder, to which each process writes the parts that it stores, by torch.distributed.checkpoint."""
