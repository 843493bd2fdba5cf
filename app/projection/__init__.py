"""What a reader makes of a data file: which value answers for each requested field. Pure; nothing here reads files."""
