"""What a reader does with real Parquet files and column bounds, by the plan of `app.projection`: the judge's judge.

The server reads no data files, so this lives with the tests that read them.
"""
