"""Statistical building blocks: hashed conditional counts, and how a table becomes them."""

from pegsynth.blocks.block import Block, DenseBlock, SparseBlock
from pegsynth.blocks.blocks import Blocks, merge
from pegsynth.blocks.disintegrate import BlockCounter, disintegrate

__all__ = ["Block", "BlockCounter", "Blocks", "DenseBlock", "SparseBlock", "disintegrate", "merge"]
