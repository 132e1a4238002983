"""Which transept this is. At the bottom of the house, where every room can read it."""

__version__ = "0.1.0"
