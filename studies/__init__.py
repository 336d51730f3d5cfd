"""Studies of methods, built on the package and outside the wheel."""
