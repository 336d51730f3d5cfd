"""A local page for people who do not program: `pegs studio`.

The page opens no table itself. Whatever reads rows is a command of `pegs` in a process of its own,
and the page shows that command. A project is a folder: what was chosen, the codebook, the
releases.
"""
