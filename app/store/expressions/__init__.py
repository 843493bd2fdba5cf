"""Every SQL statement as a SQLAlchemy Core expression, one file per noun: the source that `compiled/` is made from.

Each public upper-case name of a noun's file is one statement, known to its programs as `Statement("noun.NAME")`. Where
there is an upsert the name holds a function of the dialect's own INSERT.

No server loads this package: `app/store/compiling.py` compiles it ahead of time.
"""
