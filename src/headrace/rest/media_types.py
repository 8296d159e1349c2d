"""Media types of versions 2 and 3: which format a body has, and which one a client accepts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from headrace.rest.payloads.formats import Format

JSON: Final = "application/json"
V2: Final = "application/vnd.kafka.v2+json"
_GENERIC: Final = "application/octet-stream"  # what a client sends that says nothing

RECORD_FORMATS: Final = {each.value.lower(): each for each in Format if each is not Format.STRING}
RECORD_TYPES: Final = {
    f"application/vnd.kafka.{name}.v2+json": each for name, each in RECORD_FORMATS.items()
}
# In this order: a client without a preference gets the first.
V2_ANSWERS: Final = (V2, JSON, *RECORD_TYPES)
# Which format a client expects that accepts a media type; None means that of its consumer.
RECORD_ANSWERS: Final[Mapping[str, Format | None]] = {
    "application/vnd.kafka.binary.v2+json": Format.BINARY,
    V2: Format.BINARY,
    **RECORD_TYPES,
    JSON: None,
}
V2_BODIES: Final = frozenset({"", V2, JSON, _GENERIC, *RECORD_TYPES})
V3_BODIES: Final = frozenset({"", JSON, _GENERIC})


def essence(media_type: str) -> str:
    """A media type without its parameters."""
    return media_type.partition(";")[0].strip().lower()


def charset_is_supported(media_type: str) -> bool:
    """Whether a JSON body may be in the charset that its media type names."""
    for parameter in media_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"').lower() in ("utf-8", "iso-8859-1")
    return True


def accepted(accept: str, offers: Sequence[str]) -> str | None:
    """The offer that a client likes best, or None. The first offer wins where it likes several equally."""
    if not accept.strip() or accept == "*/*":
        return offers[0]
    ranges = [_parse_range(part) for part in accept.split(",")]
    best, best_weight = None, 0.0
    for offer in offers:
        _, weight = max(
            ((specificity, q) for kind, q in ranges if (specificity := _matches(kind, offer))),
            default=(0, 0.0),
        )
        if weight > best_weight:
            best, best_weight = offer, weight
    return best


def _parse_range(text: str) -> tuple[str, float]:
    kind, *parameters = (each.strip().lower() for each in text.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return kind, float(parameter[2:])
            except ValueError:
                return kind, 0.0
    return kind, 1.0


def _matches(kind: str, offer: str) -> int:
    """How specifically a media range means an offer; 0 if it does not."""
    if kind == offer:
        return 3
    if kind.endswith("/*") and offer.startswith(kind[:-1]):
        return 2
    return 1 if kind == "*/*" else 0
