"""The command line: arguments in, text out, and nothing else."""
