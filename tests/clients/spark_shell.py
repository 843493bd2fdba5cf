"""The far end of `tests.clients.spark`: runs inside Spark's own environment and answers one statement a line.

Input lines are JSON strings, output lines JSON objects with `rows` or `error`; anything else Spark prints goes to
standard error.
"""

from __future__ import annotations

import datetime
import decimal
import json
import os
import sys
from typing import Any


def plain(value: Any) -> Any:
    """A cell as JSON: times and decimals as text, rows and maps as they are."""
    if isinstance(value, (datetime.date, decimal.Decimal)):
        return str(value)
    if hasattr(value, "asDict"):
        return {key: plain(item) for key, item in value.asDict().items()}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - standard output is the answers' from here on

    builder = SparkSession.builder.master("local[2]").appName("icekeel")
    for setting in sys.argv[1:]:
        key, _, value = setting.partition("=")
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    print(json.dumps({"rows": [[session.version]]}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            rows = [[plain(cell) for cell in row] for row in session.sql(json.loads(line)).collect()]
            answer: dict[str, Any] = {"rows": rows}
        except Exception as error:  # every failure is an answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
    session.stop()


if __name__ == "__main__":
    main()
