"""Methods: each is one object that settles, fits, draws and stores, found by its name.

`base` says what a method is. `pegs`, `pegs_rs`, `pegs_capped`, `pegs_once`, `contingency`,
`marginal`, `bootstrap` and `imputation` hold the objects; they load what does the work when it
is needed, so that the command line can print its help at once.
"""

from pegsynth.methods.registry import get, methods, names, register, registered, taking

__all__ = ["get", "methods", "names", "register", "registered", "taking"]
