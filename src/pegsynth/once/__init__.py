"""Released blocks: noise once, then any number of rows (R11).

`release_blocks` looks at the table through a `Purse`, which adds exact noise, makes exact
choices and writes an event for each; what comes out is `Released`: noisy tables and public
structure, which may be published. `draw_rows` makes rows from it alone.
"""

from pegsynth.once.diversity import Diverse
from pegsynth.once.draw import draw_rows
from pegsynth.once.fit import release_blocks
from pegsynth.once.purse import Purse
from pegsynth.once.released import NoisyTable, Released
from pegsynth.once.steps import Steps

__all__ = ["Diverse", "NoisyTable", "Purse", "Released", "Steps", "draw_rows", "release_blocks"]
