"""A whole subtree read from ZooKeeper, which answers one question about one node at a time.

Owns the order of the questions: level by level, with many under way. Blocking; the store calls it on
a thread of its own.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from headrace.coordination.store import Node, Shortcut

if TYPE_CHECKING:
    from kazoo.client import KazooClient
    from kazoo.interfaces import IAsyncResult

T = TypeVar("T")

_WINDOW = 2_000  # questions under way at a time


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
        for path, (data, stat) in _pipelined(client.get_async, level):
            if data:
                found[path] = Node(data, stat.version, stat.czxid)
            if stat.numChildren:
                below = shortcut(path, data) if shortcut and data else None
                if below is None:
                    parents.append(path)
                else:
                    paths.extend(below)
    return found


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
