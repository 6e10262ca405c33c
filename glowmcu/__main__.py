"""`python -m glowmcu` is the command line."""

from glowmcu.cli import main

main()
