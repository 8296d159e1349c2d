"""Kafka's own shell tools, run as its scripts would run them, and what they printed."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.jvm import java_command

CLASSES = {
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "storage": "kafka.tools.StorageTool",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactional-message-copier": "org.apache.kafka.tools.TransactionalMessageCopier",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}


# Newer Javas complain about what Kafka's libraries do; no tool of Kafka's writes such lines.
JVM_WARNING = re.compile(r"^WARNING: .*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a finished tool left."""

    stdout: str
    stderr: str
    exit_code: int


def command(tool: str, *arguments: str, jars: Path | None = None) -> list[str]:
    """The command line of a tool, for tests that start and stop it themselves; of an older Kafka, whose jars are given."""
    return [*java_command(CLASSES[tool], jars=jars), *arguments]


def run(
    tool: str,
    *arguments: str,
    stdin: bytes = b"",
    timeout_s: float = 60,
    succeed: bool = True,
    jars: Path | None = None,
) -> Output:
    """Run a tool to its end. With `succeed` an exit code other than 0 is a failed test that shows what was said."""
    # TZ: tools print local times; LC_ALL: numbers must not depend on the machine.
    environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command(tool, *arguments, jars=jars),
        input=stdin,
        capture_output=True,
        timeout=timeout_s,
        env=environment,
        check=False,
    )
    output = Output(
        stdout=done.stdout.decode(),
        stderr=JVM_WARNING.sub("", done.stderr.decode()),
        exit_code=done.returncode,
    )
    if succeed:
        assert output.exit_code == 0, f"{tool} {' '.join(arguments)} ended with {output}"
    return output
