"""Settings that Kafka does not have. Each has the prefix `headrace.`, so that it is seen for what it is."""

from headrace.settings.definitions.checks import Between, Entries, OneOf
from headrace.settings.definitions.setting import honoured
from headrace.settings.definitions.value_type import BOOLEAN, INT, LIST, STRING

# fmt: off
SETTINGS = (
    honoured("headrace.busy.poll.us", INT, 200,
             "How long the broker goes on looking for the next request when requests follow each other closely, before it sleeps; 0: not at all.",
             Between(0, 1000)),
    honoured("headrace.failover.on.refused.connection", BOOLEAN, True,
             "Whether a broker is taken for dead when two others lose a connection to it and are refused new ones; if not, when its session ends."),
    honoured("headrace.http.listeners", LIST, (),
             "Where /metrics and /healthz are served, as http://host:port; empty means nowhere.", Entries(empty=True)),
    honoured("headrace.log.format", STRING, "text",
             "How the broker logs to its standard output: one readable line, or one JSON object per line.", OneOf("text", "json")),
    honoured("headrace.log.level", STRING, "INFO",
             "Least important level that is logged.", OneOf("DEBUG", "INFO", "WARNING", "ERROR")),
)
# fmt: on
