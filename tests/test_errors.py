"""What failures say."""

from __future__ import annotations

from app.errors import MESSAGE_CHARS, BadRequest, SpecError


def test_a_message_that_quotes_a_megabyte_keeps_its_beginning_and_its_end() -> None:
    """Clients, logs and journals get what is wrong and where, not the whole text again."""
    fault = SpecError(f"Cannot read {'x' * 1_000_000}: say y instead", "$.schema")
    assert len(fault.message) < MESSAGE_CHARS + 100
    assert fault.message.startswith("Cannot read xxx")
    assert fault.message.endswith("x: say y instead (at $.schema)")
    assert " characters left out] " in fault.message


def test_other_messages_are_whole() -> None:
    """Up to the limit nothing is left out."""
    assert BadRequest("x" * MESSAGE_CHARS).message == "x" * MESSAGE_CHARS
