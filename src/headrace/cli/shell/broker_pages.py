"""The HTTP pages of a broker, /metrics and /healthz: where they are served, by the broker's own config, and what they say.

Only brokers of Headrace with `headrace.http.listeners` have them. A page that is missing or does not answer is None, no error.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from headrace.client.admin.configs import ResourceType, describe_configs
from headrace.errors import HeadraceError
from headrace.wire.refusal import Refusal

if TYPE_CHECKING:
    from headrace.client.admin.admin import Admin
    from headrace.client.cluster_metadata import Node

_HTTP_LISTENERS: Final = "headrace.http.listeners"
_ANSWER_S: Final = 3


def pages_of(admin: Admin, node: Node) -> str | None:
    """The address, as host:port, at which a broker says that it serves its pages."""
    name = str(node.broker_id)
    try:
        found = describe_configs(admin, ResourceType.BROKER, [name]).get(name, [])
    except HeadraceError:
        return None
    if isinstance(found, Refusal):
        return None
    for entry in found:
        if entry.name == _HTTP_LISTENERS and entry.value:
            return page_address(entry.value.split(",")[0], node.address.host)
    return None


def page_address(listener: str, broker_host: str) -> str:
    """The address of a listener; one that listens everywhere is asked at the broker's own address."""
    parts = urlsplit(listener.strip())
    host = parts.hostname or ""
    if host in ("", "0.0.0.0", "::"):  # noqa: S104 (compared, not bound)
        host = broker_host
    return f"{host}:{parts.port or 80}"


def metrics_text(address: str) -> str | None:
    """The page of metrics."""
    return _get(address, "/metrics")


def health_reasons(address: str) -> tuple[str, ...] | None:
    """What is wrong on a broker, in sentences for people."""
    text = _get(address, "/healthz")
    try:
        reasons = json.loads(text or "")["reasons"]
    except (ValueError, KeyError, TypeError):
        return None
    return tuple(map(str, reasons))


def _get(address: str, path: str) -> str | None:
    import http.client

    connection = http.client.HTTPConnection(address, timeout=_ANSWER_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException, UnicodeDecodeError):
        return None
    finally:
        connection.close()
