"""The rule catalogue of the evolution engine."""
