"""The comparison of ported Modules with their Cells: recorded calls, example inputs, values, gradients and training steps."""
