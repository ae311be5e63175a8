"""`torchspore port`: readable PyTorch source for the Cells of a file.

`source` parses the file; it knows the text of each node and which MindSpore name each expression means. `kinds` tells Tensors from NumPy
arrays and Python values. `rules` declare the torch form of each layer, operator and method, one line each (`rules.special`: those that need
code). `rewrite` replaces spans of the user's text and nothing else, so that formatting, names and comments survive. `helpers` has functions
in plain torch for what torch lacks; the output contains the text of those that it calls. `emit` chooses the definitions that the Cells need
and composes the file. `record` runs the program and notes how its Cells are created and called; `examples` creates a call where there is
none; `verify` creates the ported Modules with the same arguments and weights, and compares values and gradients. `report` prints, also as a
page. Anything without a rule is a Problem with its line: then nothing is written.

We edit spans of `ast` nodes and do not use LibCST: a rule is a template of text, which is shorter than code that builds LibCST's nodes;
comments survive in both; and no dependency is added.
"""
