"""`headrace storage random-uuid|format|info|recover`: prepare log directories for a broker without ZooKeeper. Kafka's `kafka-storage`.

A broker needs none of it: it prepares new directories itself. `format` is for those who want to name the cluster, and for
tutorials; a directory that it has prepared is a cluster of its own, whatever the settings say about a ZooKeeper. `recover` (ours)
makes a new coordination store from the log directories when the old one was lost.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import (
    FAILED,
    OK,
    Failure,
    ToolParser,
    require_option,
    run_tool,
)
from headrace.cli.shell.connecting import read_properties
from headrace.cli.shell.output import add_output_option, print_json, wants_json

if TYPE_CHECKING:
    from headrace.settings.broker_settings import BrokerSettings

COMMANDS = ("random-uuid", "format", "info", "recover")
METADATA_VERSION = "4.3-IV0"


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("storage", "Prepare log directories for a broker without ZooKeeper.")
    parser.usage = f"headrace storage {{{','.join(COMMANDS)}}} [options]"
    parser.add_argument("command", choices=COMMANDS, help="what to do")
    parser.add_argument("--config", "-c", metavar="FILE", help="the settings of the broker")
    parser.add_argument("--cluster-id", "-t", metavar="ID", help="the id of the new cluster")
    parser.add_argument(
        "--ignore-formatted", "-g", action="store_true", help="leave what is formatted as it is"
    )
    parser.add_argument(
        "--without-zookeeper",
        action="store_true",
        help="recover: this broker was a cluster of its own, without ZooKeeper",
    )
    # Of Kafka's own quorum of controllers, which a broker here does without.
    parser.add_argument("--standalone", "-s", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--no-initial-controllers", "-N", action="store_true", help=argparse.SUPPRESS
    )
    parser.add_argument("--initial-controllers", "-I", help=argparse.SUPPRESS)
    parser.add_argument("--release-version", "-r", help=argparse.SUPPRESS)
    parser.add_argument("--feature", "-f", action="append", help=argparse.SUPPRESS)
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    if options.command == "random-uuid":
        print(new_cluster_id())
        return OK
    require_option(options, "config")
    if options.command == "info":
        return _print_info(options)
    if options.command == "recover":
        return _recover(options)
    require_option(options, "cluster-id")
    return _format(options)


def new_cluster_id() -> str:
    """22 characters; never one that an option parser would take for an option."""
    from uuid import uuid4

    from headrace.ids import text_of_id

    while (text := text_of_id(uuid4())).startswith("-"):
        pass
    return text


def _settings(path: str) -> BrokerSettings:
    from headrace.cli.local.places import default_data_directory
    from headrace.settings.broker_settings import BrokerSettings

    return BrokerSettings.from_properties(
        read_properties(path), default_log_dir=default_data_directory()
    )


def _format(options: argparse.Namespace) -> int:
    import asyncio
    from uuid import uuid4

    from headrace.log.files.meta_properties import META_PROPERTIES_FILE, claim_directory
    from headrace.log.files.os_disk import OsDisk

    settings = _settings(options.config)
    formatted = [each for each in settings.log_dirs if Path(each, META_PROPERTIES_FILE).exists()]
    if formatted and not options.ignore_formatted:
        raise Failure(
            f"Log directory {formatted[0]} is already formatted."
            " Use --ignore-formatted to ignore this directory and format the others.",
        )
    new = [each for each in settings.log_dirs if each not in formatted]
    if not new:
        print("All of the log directories are already formatted.")
        return OK
    disk = OsDisk()
    if not formatted:
        disk.make_directory(settings.log_dirs[0])
        asyncio.run(_make_store(settings.log_dirs[0], options.cluster_id))
    for directory in new:
        print(f"Formatting {directory} with metadata.version {METADATA_VERSION}.")
        disk.make_directory(directory)
        claim_directory(
            disk,
            directory,
            cluster_id=options.cluster_id,
            node_id=settings.node_id,
            new_directory_id=uuid4(),
        )
    return OK


async def _make_store(directory: str, wanted_id: str) -> None:
    from headrace.broker.cluster.store_identity import STORE_FILE
    from headrace.coordination.embedded import EmbeddedStore
    from headrace.coordination.membership import cluster_id, prepare

    store = EmbeddedStore(Path(directory) / STORE_FILE)
    await store.open()
    try:
        await prepare(store)
        known_id = await cluster_id(store, wanted_id)
    finally:
        await store.close()
    if known_id != wanted_id:
        raise Failure(
            f"{directory} belongs to the cluster {known_id}",
            why="its coordination store was made for that one",
            hint="use another log directory",
        )


def _recover(options: argparse.Namespace) -> int:
    import asyncio
    import time

    from headrace.broker.cluster.store_identity import STORE_FILE, cluster_of_directories
    from headrace.broker.cluster.store_recovery import (
        KEEP_EVERYTHING,
        Recovered,
        find_logs,
        recover,
    )
    from headrace.broker.cluster.topic_creation import internal_topic_configs
    from headrace.coordination.embedded import EmbeddedStore
    from headrace.log.files.os_disk import OsDisk
    from headrace.log.log_dirs import LOCK_FILE

    settings = _settings(options.config)
    path = Path(settings.log_dirs[0], STORE_FILE)
    disk = OsDisk()
    cluster = cluster_of_directories(disk, settings)
    if settings.zookeeper_connect is not None:
        raise Failure(
            "only the store of a broker without ZooKeeper can be made anew",
            why="what ZooKeeper knew of the other brokers is not on this one's disks",
            hint="restore ZooKeeper from a backup; for a single broker leave zookeeper.connect out",
        )
    if cluster is None or path.exists():
        raise Failure(
            f"there is nothing to recover in {settings.log_dirs[0]}",
            why=f"{path} is there" if path.exists() else "no meta.properties names a cluster",
        )
    if not options.without_zookeeper:
        raise Failure(
            f"it is not sure that the cluster {cluster} was this broker alone",
            why=f"{options.config} has no zookeeper.connect, and the log directories do not tell whether there was one. If other"
            " brokers belong to the cluster, this broker would become a second cluster with the same id",
            hint="if the cluster had a ZooKeeper, set zookeeper.connect and start the broker;"
            " if this broker was always alone, add --without-zookeeper",
        )
    releases = [disk.lock(f"{each}/{LOCK_FILE}") for each in settings.log_dirs]
    logs = find_logs(disk, settings.log_dirs)
    internal = internal_topic_configs(settings, replication_factor=1)

    async def write(aside: Path) -> Recovered:
        store = EmbeddedStore(aside)
        await store.open()
        try:
            now_s = int(time.time())
            return await recover(store, cluster, settings.node_id, logs, now_s, internal)
        finally:
            await store.close()

    aside = path.with_suffix(".recovered")
    for left in (aside, *aside.parent.glob(f"{aside.name}-*")):
        left.unlink(missing_ok=True)
    recovered = asyncio.run(write(aside))
    aside.rename(path)
    for release in releases:
        release()
    for name, count in sorted(recovered.topics.items()):
        print(f"{name}: {count} partitions")
    for path_left, reason in recovered.left_out:
        print(f"{path_left}: left out, {reason}")
    kept = ", ".join(f"{name}={value}" for name, value in KEEP_EVERYTHING.items())
    print(
        f"Recovered {len(recovered.topics)} topics of the cluster {cluster}."
        f" Their configs were lost: topics keep everything ({kept}) until you set their configs again."
    )
    return OK


def _print_info(options: argparse.Namespace) -> int:
    from headrace.log.files.meta_properties import META_PROPERTIES_FILE
    from headrace.properties import parse_properties

    directories = _settings(options.config).log_dirs
    files = {each: Path(each, META_PROPERTIES_FILE) for each in directories}
    identities = {
        each: parse_properties(file.read_text(encoding="utf-8"))
        for each, file in files.items()
        if file.is_file()
    }
    problems = [
        f"{each} is not formatted." if Path(each).is_dir() else f"{each} does not exist"
        for each in directories
        if each not in identities
    ]
    metadata = next(iter(identities.values()), None)
    if wants_json(options):
        print_json({"logDirs": list(directories), "metadata": metadata, "problems": problems})
        return FAILED if problems else OK
    _print_list("Found log director", [each for each in directories if Path(each).is_dir()])
    if metadata is not None:
        pairs = ", ".join(f"{name}={metadata[name]}" for name in sorted(metadata))
        print(f"Found metadata: {{{pairs}}}\n")
    _print_list("Found problem", problems, one="", many="s")
    return FAILED if problems else OK


def _print_list(title: str, lines: list[str], *, one: str = "y", many: str = "ies") -> None:
    if lines:
        print(f"{title}{one if len(lines) == 1 else many}:")
        print("".join(f"  {line}\n" for line in lines))
