"""Does an analysis of the original agree with a release? Answered with noise (R32)."""
