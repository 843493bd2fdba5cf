"""Tables: load, commit, create, list, drop, rename, register, report."""
