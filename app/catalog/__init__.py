"""The use cases: what the catalog does, told in the order in which it happens.

Every function takes a `Context` (the world, handed in) and, where somebody acts, a `Caller`. It returns plain values
or raises a kind of `app.errors`; it knows neither HTTP nor SQL. Every change ends in exactly one `Store.write` of one
unit (`units.land`): before that line nothing has happened, after it nothing can fail.
"""
