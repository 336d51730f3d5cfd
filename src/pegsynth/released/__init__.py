"""Released blocks: noise once, then any number of rows (R11).

`release_blocks` looks at the table through a `PrivacyFilter`, which adds exact noise, makes exact
choices and writes an event for each; what comes out is `Released`: noisy tables and public
structure, which may be published. `draw_rows` makes rows from it alone.
"""

from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.released.draw import draw_rows
from pegsynth.released.fit import release_blocks
from pegsynth.released.published import NoisyTable, Released
from pegsynth.released.steps import Steps

__all__ = [
    "NoisyTable",
    "PrivacyFilter",
    "Released",
    "Steps",
    "draw_rows",
    "release_blocks",
]
