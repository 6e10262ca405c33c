"""Where every buffer lies."""
