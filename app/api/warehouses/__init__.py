"""Warehouses: list, show, create, change, drop. Secrets go in and never come out."""
