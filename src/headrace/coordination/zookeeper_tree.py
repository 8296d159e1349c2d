"""A whole subtree read from ZooKeeper, which answers one question about one node at a time.

Owns the order of the questions: level by level, with many under way; where there are very many, in bulk. Blocking; the
store calls it on a thread of its own.
"""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from headrace.coordination.store import Node, Shortcut
from headrace.coordination.zookeeper_bulk import BulkReadFailed, FoundNode, read_nodes

if TYPE_CHECKING:
    from kazoo.client import KazooClient
    from kazoo.interfaces import IAsyncResult

T = TypeVar("T")

_WINDOW = 2_000  # questions under way at a time
_MANY = 200  # worth a connection of their own
_BULK_TIMEOUT_S = 5.0

_logger = logging.getLogger(__name__)


def read_tree(client: "KazooClient", root: str, shortcut: Shortcut | None) -> dict[str, Node]:
    """Every node below the root that holds data. Raises kazoo's exceptions."""
    found: dict[str, Node] = {}
    paths: list[str] = []
    parents = [root]
    while paths or parents:
        for parent, names in _pipelined(client.get_children_async, parents):
            prefix = "/" if parent == "/" else parent + "/"
            paths.extend(prefix + name for name in names)
        level, paths, parents = paths, [], []
        for path, (data, version, created_txn, child_count) in _nodes(client, level).items():
            if data:
                found[path] = Node(data, version, created_txn)
            if child_count:
                below = shortcut(path, data) if shortcut and data else None
                if below is None:
                    parents.append(path)
                else:
                    paths.extend(below)
    return found


def _nodes(client: "KazooClient", paths: Sequence[str]) -> dict[str, FoundNode]:
    """Those that exist."""
    if len(paths) >= _MANY:
        try:
            servers = list(dict.fromkeys(client.hosts))  # each may be named more than once
            return read_nodes(servers, client.chroot, paths, timeout_s=_BULK_TIMEOUT_S)
        except BulkReadFailed as error:
            _logger.info("%d nodes are read one by one: %s", len(paths), error)
    return {
        path: FoundNode(data, stat.version, stat.czxid, stat.numChildren)
        for path, (data, stat) in _pipelined(client.get_async, paths)
    }


def _pipelined(
    ask: "Callable[[str], IAsyncResult[T]]", paths: Sequence[str]
) -> "list[tuple[str, T]]":
    from kazoo.exceptions import NoNodeError

    answers = []
    for start in range(0, len(paths), _WINDOW):
        window = paths[start : start + _WINDOW]
        for path, result in [(path, ask(path)) for path in window]:
            try:
                answers.append((path, result.get()))
            except NoNodeError:  # deleted since its parent was read
                continue
    return answers
