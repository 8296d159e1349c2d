"""What the figures were taken on and with: versions, processors, memory, kernel. No names of hosts, no paths."""

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.beside_kafka import librdkafka
from bench.beside_kafka.servers import JVM_FLAGS
from tests.support import tools


def machine() -> dict[str, object]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "processor": _first(r"model name\s*: (.+)", Path("/proc/cpuinfo")),
        "memory_gb": round(int(_first(r"MemTotal:\s*(\d+)", Path("/proc/meminfo"))) / 1e6, 1),
        "kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "java": _java_version(),
        "headrace": version("headrace"),
        "apache_kafka": tools.KAFKA_VERSION,
        "librdkafka": librdkafka.version(),
        "uvloop": version("uvloop"),
    }


def commands() -> dict[str, str]:
    """How each server was started."""
    return {
        "headrace": "headrace server-start server.properties",
        "kafka": f"java {' '.join(JVM_FLAGS)} -cp 'libs/*' kafka.Kafka server.properties",
        "floor": "python -m bench.beside_kafka.floor server.properties",
    }


def _first(pattern: str, path: Path) -> str:
    found = re.search(pattern, path.read_text())
    return found[1].strip() if found else "0"


def _java_version() -> str:
    shown = subprocess.run(
        [tools.find("java"), "-version"], capture_output=True, text=True, check=False
    )
    found = re.search(r'version "([^"]+)"', shown.stderr)
    return found[1] if found else "unknown"
