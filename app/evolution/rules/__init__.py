"""The coded rules, nothing else: a record, a function and a manual page each."""
