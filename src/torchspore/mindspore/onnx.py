"""`mindspore.onnx.export`: writes a network as an ONNX file, with names of inputs and outputs."""
from __future__ import annotations

from typing import Any

from torchspore.base.files import READ_ONLY, write_atomically
from torchspore.base.text import message, short
from torchspore.mindspore.train.export import full_path, inference_model, tensors_of

__all__ = ["export"]


def export(
    net: Any, *inputs: Any, file_name: str, input_names: list[str] | None = None, output_names: list[str] | None = None,
    export_params: bool = True, keep_initializers_as_inputs: bool = False, dynamic_axes: dict[str, dict[int, str]] | None = None,
) -> None:
    """Writes `net`, a Cell or a function, in inference mode for `inputs`, to an ONNX file; needs the libraries onnx and onnxscript.

    `input_names` and `output_names` name the inputs and outputs, from left to right; the remaining ones are input0, input1, … and output0,
    output1, …. Parameters are inputs too with `keep_initializers_as_inputs`, and only inputs without `export_params`.

    Raises TypeError and ValueError for invalid arguments, for a call that can't be one graph, and for `dynamic_axes`: a file fixes the
    lengths of these inputs.
    """
    for name, value in (("input_names", input_names), ("output_names", output_names)):
        if value is not None and not (isinstance(value, list) and all(isinstance(name, str) and name for name in value)):
            raise ValueError(message(f"onnx.export({name}={short(value)})", "a list of strings"))
    for name, flag in (("export_params", export_params), ("keep_initializers_as_inputs", keep_initializers_as_inputs)):
        if not isinstance(flag, bool):
            raise TypeError(message(f"onnx.export({name}={short(flag)})", "True or False"))
    if dynamic_axes is not None and not isinstance(dynamic_axes, dict):
        raise ValueError(message(f"onnx.export(dynamic_axes={short(dynamic_axes)})", "a dict"))
    if dynamic_axes:
        hint = "write a file for each length"
        raise ValueError(message("onnx.export(dynamic_axes=...)", "None: a file fixes the lengths of its inputs", hint=hint))
    path = full_path("onnx.export", net, file_name, ".onnx")
    tensors = tensors_of(inputs)
    model = inference_model(net, tensors, "onnx.export")
    from torchspore.export import onnx

    form = onnx.Form(tuple(input_names or ()), tuple(output_names or ()), export_params, keep_initializers_as_inputs or not export_params)
    write_atomically(path, onnx.of_inputs(model, tensors, "onnx.export", form), READ_ONLY)
