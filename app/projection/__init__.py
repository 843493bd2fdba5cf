"""What a reader makes of a data file: which value answers for each requested field, and the values themselves.

The plan is pure (`file_schema`, `projection`, `defaults`, `widening`, `bounds`); only `arrow` and `arrow_types` know
Arrow, and nothing that starts the server imports them.
"""
