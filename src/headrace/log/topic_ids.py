"""Topic ids as text: 16 bytes in URL-safe base 64 without padding, as Kafka writes them."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID

from headrace.errors import CorruptBatch


def encode_topic_id(topic_id: UUID) -> str:
    """22 characters."""
    return urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def decode_topic_id(text: str) -> UUID:
    """The id behind 22 characters; CorruptBatch for anything else."""
    try:
        return UUID(bytes=urlsafe_b64decode(text + "=="))
    except ValueError as error:
        raise CorruptBatch(f"{text!r} is not a topic id") from error
