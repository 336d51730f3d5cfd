"""What is wrong with a release beyond chance, each problem in one sentence."""
