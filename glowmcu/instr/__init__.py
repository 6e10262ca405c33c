"""Level 2, how it is computed: buffers and instructions, no values."""
