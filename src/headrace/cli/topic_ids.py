"""Topic ids as Kafka prints them: 22 characters of URL-safe base 64."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID

from headrace.cli.command_line import UsageError


def text_of_id(topic_id: UUID) -> str:
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def id_of_text(text: str) -> UUID:
    try:
        return UUID(bytes=urlsafe_b64decode(text + "=="))
    except ValueError as wrong:
        raise UsageError(f"--topic-id: '{text}' is not a topic id") from wrong
