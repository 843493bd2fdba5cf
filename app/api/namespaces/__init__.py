"""Namespaces: nested, with properties."""
