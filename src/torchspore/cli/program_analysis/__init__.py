"""What a program uses of MindSpore, found by parsing it: names, options, calls of older releases, notebooks. Nothing is run."""
