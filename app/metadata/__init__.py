"""How updates become the next metadata: a pure fold. Whether it may follow the base is judged in `app.evolution`."""
