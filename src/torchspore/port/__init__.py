"""`torchspore port`: readable PyTorch source for the Cells of a file.

`analysis` parses the user's files: the text of each node, the MindSpore name that each expression means, and which expressions are
Tensors, NumPy arrays or Python values. `rules` declare the torch form of each layer, operator and method, one line each (`rules.special`:
those that need code). `rewriting` replaces spans of the user's text and nothing else, so that formatting, names and comments survive; it
chooses the definitions that the Cells need and composes the file. `training` writes the loop of a training script. `compat` has functions
in plain torch for what torch lacks; the output contains the text of those that it calls. `verification` runs the program, records how its
Cells are created and called, or creates a call, and compares the ported Modules with the Cells. `report` prints, also as a page.
`complete_port` runs these steps. Anything without a rule is a Problem with its line: then nothing is written.

We edit spans of `ast` nodes and do not use LibCST: a rule is a template of text, which is shorter than code that builds LibCST's nodes;
comments survive in both; and no dependency is added.
"""
