"""Pure ASGI around the endpoints: raw paths, request id, access checks, the error envelope, body limit, log, metrics.

Nothing here knows a resource of the catalog; what is specific (which error is which status) is handed in by `main`.
Only pure ASGI callables live here: one BaseHTTPMiddleware costs more than all of these together.
"""
