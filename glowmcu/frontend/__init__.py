"""ONNX in, Graph out."""
