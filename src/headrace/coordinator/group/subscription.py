"""The topics in a consumer's JoinGroup metadata. Pure, and lenient: the blob is the clients' affair.

Every version of the blob (0-3, and any later one) starts alike: version i16, then an array of topic
names. No more is read, so no version needs to be known. A blob that is not one is answered with None.
"""

from struct import error as struct_error
from struct import unpack_from


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topic names, or None if the bytes are not a subscription."""
    try:
        version, count = unpack_from(">hi", metadata)
        if version < 0 or count < 0 or count > len(metadata):
            return None
        topics = []
        position = 6
        for _ in range(count):
            (length,) = unpack_from(">h", metadata, position)
            end = position + 2 + length
            if length < 0 or end > len(metadata):
                return None
            topics.append(str(metadata[position + 2 : end], "utf-8"))
            position = end
    except (struct_error, UnicodeDecodeError):
        return None
    return frozenset(topics)
