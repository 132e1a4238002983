"""The machine: its devices, precision and random numbers."""
