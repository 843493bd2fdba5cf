"""How strictly the rules are held for a table, and one-shot exceptions."""
