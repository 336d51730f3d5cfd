"""Methods to compare with: contingency, marginal, mi, pmi, cart, forest, bootstrap."""
