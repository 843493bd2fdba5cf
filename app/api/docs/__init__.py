"""The API's documentation for people: Swagger UI from an installed package, nothing loaded from elsewhere."""
