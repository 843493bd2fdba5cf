"""Random histories of real tables, in which a reader judges the judge.

`world` holds a table with its Parquet files and the truth about every row; `drawing` draws types, values and schemas;
`edits` changes schemas, `acts` commits things; `reading` says what is right and compares it with what the reader
returns; `refusals` looks for the witness of a refusal.
"""
