"""Strict JSON: codec, chunked text, append log. No noun of Iceberg is known here."""
