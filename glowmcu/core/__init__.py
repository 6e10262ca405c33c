"""Vocabulary shared by all levels: types, quantization, fixed point, the pass runner."""
