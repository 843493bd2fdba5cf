"""Endpoints, a package per resource, each declared once for the router, `/v1/config` and the OpenAPI document.

An endpoint reads its request, calls one use case and renders what it returns; it decides nothing.
"""
