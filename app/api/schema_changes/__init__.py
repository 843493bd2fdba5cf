"""Schema changes on request: may I, what would it be, do it, and what has been done."""
