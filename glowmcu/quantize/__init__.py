"""From float to integer types."""
