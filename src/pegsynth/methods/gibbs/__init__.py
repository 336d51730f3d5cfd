"""Gibbs samplers over hashed blocks with virtual rows: plan, fit, samplers, storage."""
