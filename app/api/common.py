"""What every operation may answer beside its own results and refusals."""

from __future__ import annotations

from app import errors
from app.edge.errors import RequestTimeout, UnsupportedMediaType

ALWAYS: tuple[type[Exception], ...] = (
    errors.BadRequest,
    errors.NotAuthenticated,
    errors.Forbidden,
    errors.Unavailable,
    errors.IcekeelError,
)
BODY: tuple[type[Exception], ...] = (errors.PayloadTooLarge, UnsupportedMediaType, RequestTimeout)
"""What an operation with a body adds."""

CHANGE: tuple[type[Exception], ...] = (errors.Unprocessable, errors.TooManyRequests)
"""What an operation that changes something adds: a reused idempotency key, a full queue."""

COMMIT: tuple[type[Exception], ...] = (errors.CommitFailed, errors.CommitStateUnknown, errors.EvolutionRefused)
