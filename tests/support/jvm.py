"""How a Java program with Kafka's jars is started: quickly, quietly, with a small heap."""

from pathlib import Path

from tests.support import tools

LOGGING = Path(__file__).with_name("kafka") / "log4j2.properties"
# Short-lived programs and small brokers: start-up is what counts, not the peak.
FAST_START = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Djava.net.preferIPv4Stack=true",
)


def java_command(
    main: str,
    *,
    heap: str = "256m",
    log_level: str = "ERROR",
    java: Path | None = None,
    jars: Path | None = None,
) -> list[str]:
    """The command that runs a class of Kafka's jars, or of those in another directory; its arguments follow."""
    jars = jars or tools.require("kafka-jars")
    return [
        str(java or tools.require("java")),
        f"-Xmx{heap}",
        *FAST_START,
        f"-Dlog4j2.configurationFile={LOGGING}",
        f"-Dtest.log.level={log_level}",
        "-cp",
        f"{jars}/*",
        main,
    ]
