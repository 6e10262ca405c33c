"""From instructions and a memory plan to C."""
