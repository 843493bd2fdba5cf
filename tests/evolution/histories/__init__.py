"""Random histories of real tables, in which a reader judges the judge.

`world` holds a table with its Parquet files, and every commit goes through it. `truth` knows what each row must read
as, `reading` compares that with what the reader returns, `refusals` looks for the witness of a refusal. `drawing` draws
types, values and fields; `legal_edits` and `wild_edits` change schemas; `schema_acts`, `writes` and `ref_acts` are the
commits that `acts` chooses from, and `history` strings them together.
"""
