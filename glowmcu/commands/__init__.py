"""Commands of the command line, one module per group; they only parse options and print."""
