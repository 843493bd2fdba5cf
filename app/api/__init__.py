"""Endpoints, one file per resource, each declared once with parameters, bodies and errors.

An endpoint reads its request, calls one use case and renders what it returns; it decides nothing. The declarations feed
dispatch, the `endpoints` of `/v1/config` and the OpenAPI document. `errors.py` is the only table from kind of failure
to status and type.
"""
