"""Icekeel: an Apache Iceberg REST catalog that protects schema evolution."""

__version__ = "0.1.0"
