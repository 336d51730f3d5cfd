"""Files of other programs, read in a process of their own.

SPSS, Stata, SAS, Excel and DuckDB files are read by compiled libraries that a broken file may
crash. `serve` is what that process runs: it imports none of the package but this folder, takes
requests as lines of JSON and answers with Arrow streams. `pegsynth.tables.foreign_read` is its
client.
"""
