"""Spark's own Kafka connector: its jars, copied by Maven the first time."""

import os
import shutil
from pathlib import Path

from tests.support import tools

# Not the newest of each: this set is to be had, and it runs on PySpark 4.3.
ARTIFACTS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
HOME = tools.CACHE / "spark-kafka"


def find_jars() -> list[Path]:
    """The jars. Raises ToolMissing."""
    wanted = [HOME / "{1}-{2}.jar".format(*artifact.split(":")) for artifact in ARTIFACTS]
    if all(jar.exists() for jar in wanted):
        return wanted
    maven = tools.find("maven")
    aside = HOME.with_name(f"spark-kafka.{os.getpid()}")  # others may fetch them at the same time
    try:
        for artifact in ARTIFACTS:
            _copy(maven, artifact, aside)
        HOME.mkdir(parents=True, exist_ok=True)
        for jar in aside.iterdir():
            jar.replace(HOME / jar.name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return wanted


def _copy(maven: Path, artifact: str, directory: Path) -> None:
    words: list[str | Path] = [maven, "-q", "-B", "-U", COPY, f"-Dartifact={artifact}"]
    tools.download([*words, f"-DoutputDirectory={directory}"], f"Maven could not fetch {artifact}")
