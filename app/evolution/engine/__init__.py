"""The judge and what it looks at: change, diff, lineage, compatibility. No coded rule stands here."""
