"""Configs of a client-metrics subscription (KIP-714)."""

from headrace.settings.definitions.setting import accepted
from headrace.settings.definitions.value_type import INT, LIST

# fmt: off
CONFIGS = (
    accepted("interval.ms", INT, 300000, "How often clients of this subscription push their metrics."),
    accepted("match", LIST, (), "Which clients are meant, as label=pattern; empty means all."),
    accepted("metrics", LIST, (), "Prefixes of the metrics to push; * means all."),
)
# fmt: on
