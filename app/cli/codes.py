"""Exit codes of commands."""

FINE, FOUND, COULD_NOT = 0, 1, 2
