"""Folders of dumped operators, of torchspore and of MindSpore: reading, pairing and comparing them."""
