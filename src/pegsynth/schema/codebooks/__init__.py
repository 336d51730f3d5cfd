"""Codebooks of other programs: read into a schema without opening a row, and written.

`read_codebook` takes what value labels, limits, types and missing codes a file declares; nothing of
it is drafted from data. `write_codebook` gives a schema in one of `WRITTEN`.
"""

from pegsynth.schema.codebooks.exporting import WRITTEN, write_codebook
from pegsynth.schema.codebooks.importing import read_codebook

__all__ = ["WRITTEN", "read_codebook", "write_codebook"]
