"""The catalog: which datasets exist, where their refs stand and what changed, in one transaction."""
