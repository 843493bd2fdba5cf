"""For operators: is the process alive, can it serve, and its numbers."""
