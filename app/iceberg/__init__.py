"""The Iceberg nouns, one file each: documents in, values that can be read at all, documents out.

What a reader of the format could not load cannot be built here (SpecError); whether one document may follow another
is judged elsewhere. Pure: no I/O, no clock, no randomness.
"""
