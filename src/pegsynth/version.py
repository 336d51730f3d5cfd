"""The version of the program, apart from everything else, so that anybody may ask for it."""

__version__ = "0.1.0"
