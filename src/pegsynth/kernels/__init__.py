"""Compiled loops over plain arrays. They know nothing of schemas, files or privacy.

All kernels release the interpreter lock and are driven from Python threads, are compiled
once and cached on disk, and have a slow twin in the tests.
"""
