"""Why a store did not do what it was asked, in words of our own.

The client's message holds the body of the answer, and an endpoint may be any server: whoever chooses it would read, in
our errors and logs, what that server says to us. What passes is the HTTP status and error codes of the three clouds.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

_STATUS: Final = re.compile(r"returned non-2xx status code: ([1-5][0-9]{2})\b")
# Where the client looks for credentials when the environment holds none.
_SOURCES: Final = re.compile(r"Error performing [A-Z]+ https?://(?:169\.254\.|metadata\.google\.internal)")
_CODE: Final = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
_KNOWN_CODES: Final = (
    "AccessDenied AccountIsDisabled AllAccessDisabled AuthenticationFailed AuthorizationFailure "
    "AuthorizationHeaderMalformed AuthorizationPermissionMismatch AuthorizationProtocolMismatch "
    "ContainerBeingDeleted ContainerNotFound ExpiredToken InsufficientAccountPermissions InternalError "
    "InvalidAccessKeyId InvalidArgument InvalidAuthenticationInfo InvalidBucketName InvalidRequest InvalidToken "
    "KMSAccessDenied KMSDisabled MethodNotAllowed NoSuchBucket NoSuchKey NotImplemented OperationTimedOut "
    "PermanentRedirect PreconditionFailed RequestTimeTooSkewed RequestTimeout ResourceNotFound ServerBusy "
    "ServiceUnavailable SignatureDoesNotMatch SlowDown TemporaryRedirect UserProjectMissing"
)
_CODES: Final = frozenset(_KNOWN_CODES.split())
_NO_CREDENTIALS: Final = "neither the options nor the server's environment give credentials"

# What the client says of itself when no answer came, and what that means.
_SILENCES: Final = (
    (re.compile(r"kind: Timeout|\bTimedOut\b"), "no answer within the time limit"),
    (re.compile(r"dns error|failed to lookup address"), "the name of the host cannot be resolved"),
    (re.compile(r"ConnectionRefused|Connection refused"), "connection refused"),
    (re.compile(r"[Cc]ertificate|InvalidCertificate"), "TLS: the certificate is not trusted"),
    (re.compile(r"kind: Connect\b"), "no connection"),
    (re.compile(r"HTTP error:"), "the connection broke"),
    (re.compile(r"[Ii]nvalid \w+ response"), "the answer is not one of an object store"),
    (re.compile(r"[Cc]redential|metadata"), _NO_CREDENTIALS),
)


def reason(fault: Exception) -> str:
    """One line that holds nothing of an answer's body."""
    text = str(fault)
    if _SOURCES.search(text) is not None:
        return _NO_CREDENTIALS
    if (status := _STATUS.search(text)) is not None:
        return f"the store answered {_named(int(status[1]))}{_code(text)}"
    return next((words for sign, words in _SILENCES if sign.search(text)), "the store's client failed")


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _code(text: str) -> str:
    found = _CODE.search(text)
    return f" ({found[1]})" if found is not None and found[1] in _CODES else ""
