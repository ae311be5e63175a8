"""A captured call as a file that other programs run: ONNX, and MINDIR with torch's operators."""
