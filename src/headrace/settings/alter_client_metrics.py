"""Rules for the configs of a client-metrics subscription (KIP-714)."""

import re
from collections.abc import Mapping

from headrace.errors import SettingError
from headrace.settings import definitions
from headrace.settings.resource import invalid_config, invalid_request
from headrace.settings.values import list_entries, parse
from headrace.wire.refusal import Refusal

_SHORTEST_MS, _LONGEST_MS = 100, 3_600_000
_LONGEST_EXPRESSION = 500  # compiling one of thousands of nested brackets takes seconds
_LABELS = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def refuse_client_metrics(configs: Mapping[str, str]) -> Refusal | None:
    """Why a subscription may not have these configs; None if it may."""
    for name, text in configs.items():
        setting = definitions.CLIENT_METRICS.get(name)
        if setting is None:
            return invalid_request(f"Unknown client metrics configuration: {name}")
        try:
            value = parse(setting, text)
        except SettingError as error:
            return invalid_config(str(error))
        if isinstance(value, int) and not _SHORTEST_MS <= value <= _LONGEST_MS:
            return invalid_request(
                f"Invalid value {text} for interval.ms, interval must be between {_SHORTEST_MS} "
                f"and {_LONGEST_MS} (1 hour)"
            )
        if name == "match":
            for pattern in list_entries(text):
                if not _is_client_match(pattern):
                    return invalid_config(f"Illegal client matching pattern: {pattern}")
    return None


def _is_client_match(pattern: str) -> bool:
    label, equals, expression = pattern.partition("=")
    if not equals or label.strip() not in _LABELS or len(expression) > _LONGEST_EXPRESSION:
        return False
    try:
        re.compile(expression.strip())
    except re.error:
        return False
    return True
