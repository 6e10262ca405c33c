"""Level 1, what is computed: values and nodes, no memory."""
