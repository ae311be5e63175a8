"""Starts the stand-in accelerator in each Python process whose PYTHONPATH names this folder, before its program runs."""
import torchspore

torchspore.install()

import stand_in  # noqa: E402  (torchspore has to be installed first)

stand_in.begin()
