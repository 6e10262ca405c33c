"""What a machine can do and which kernels it offers."""
