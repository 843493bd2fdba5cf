"""Commits to several tables at once."""
