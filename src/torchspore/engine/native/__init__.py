"""C++ code that is compiled for the installed torch at first need: the counter of host memory."""
