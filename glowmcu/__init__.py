"""glowmcu compiles trained neural networks (ONNX) into C for microcontrollers."""

__version__ = "0.1.0"
