"""Tests of the Iceberg nouns."""
