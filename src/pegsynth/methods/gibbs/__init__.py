"""Gibbs samplers over hashed blocks with virtual rows: `pegs`, `pegs-rs`, `pegs-capped`."""
