"""The shapes of requests and answers, for the OpenAPI document.

They describe and never parse: bodies go through the parsers of `app.iceberg`, which keep what they do not know and name
the JSON path of a fault. msgspec structs, because declaring one costs microseconds of every start.
"""
