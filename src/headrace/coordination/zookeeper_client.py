"""ZooKeeper's client as the store uses it, and the real one: kazoo.

Owns what blocks: connecting, closing and reading a whole tree run in worker threads. Everything else is asked without waiting,
and its result is told on a thread of kazoo's. Leaves the session, its lease and the meaning of failures to `zookeeper`. kazoo is
imported when a client is made.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from headrace.coordination.lease import OnConfirmed
from headrace.coordination.store import Node, Shortcut
from headrace.coordination.zookeeper_probe import wait_until_served
from headrace.coordination.zookeeper_tree import read_tree

if TYPE_CHECKING:
    from kazoo.client import KazooClient, TransactionRequest, Watch
    from kazoo.interfaces import IAsyncResult
    from kazoo.protocol.states import ZnodeStat


class ZooKeeperClient(Protocol):
    """One session after the other with an ensemble. Listeners and results are called on any thread."""

    async def start(self, timeout_s: float, *, creates_chroot: bool) -> None:
        """Connect. Raises TimeoutError and kazoo's exceptions."""

    async def stop(self) -> None:
        """End the session, or an attempt to start."""

    async def read_tree(self, path: str, shortcut: Shortcut | None) -> dict[str, Node]:
        """Every node below a path that holds data. Raises kazoo's exceptions."""

    def add_listener(self, listener: Callable[[str], None]) -> None:
        """Call back with every `KazooState`."""

    def get_async(self, path: str) -> "IAsyncResult[tuple[bytes, ZnodeStat]]":
        """Read a node."""

    def exists_async(
        self, path: str, watch: "Watch | None" = None
    ) -> "IAsyncResult[ZnodeStat | None]":
        """Whether a node is there, with a watch on the node."""

    def get_children_async(
        self, path: str, watch: "Watch | None" = None
    ) -> "IAsyncResult[list[str]]":
        """The names of a node's children, with a watch on these."""

    def create_async(
        self, path: str, data: bytes, *, ephemeral: bool, makepath: bool
    ) -> "IAsyncResult[tuple[str, ZnodeStat]]":
        """Create a node."""

    def set_async(self, path: str, data: bytes, version: int) -> "IAsyncResult[ZnodeStat]":
        """Replace a node's data."""

    def delete_async(self, path: str, version: int) -> "IAsyncResult[bool]":
        """Delete a node."""

    def sync_async(self, path: str) -> "IAsyncResult[str]":
        """Ask the leader of the ensemble."""

    def transaction(self) -> "TransactionRequest":
        """Several writes, all or none."""


MakeClient = Callable[[str, float, OnConfirmed], ZooKeeperClient]


def kazoo_client(
    connect: str, session_timeout_s: float, on_confirmed: OnConfirmed
) -> ZooKeeperClient:
    """A client of the ensemble that `connect` names."""
    from headrace.coordination.zookeeper_connection import measured_client

    client = measured_client(connect, session_timeout_s, on_confirmed)
    return KazooSession(connect, client)


class KazooSession:
    """A `ZooKeeperClient` on kazoo."""

    def __init__(self, connect: str, client: "KazooClient") -> None:
        self._connect = connect
        self.kazoo = client
        self.add_listener = client.add_listener
        self.get_async = client.get_async
        self.exists_async = client.exists_async
        self.get_children_async = client.get_children_async
        self.set_async = client.set_async
        self.delete_async = client.delete_async
        self.sync_async = client.sync_async
        self.transaction = client.transaction

    def create_async(
        self, path: str, data: bytes, *, ephemeral: bool, makepath: bool
    ) -> "IAsyncResult[tuple[str, ZnodeStat]]":
        return self.kazoo.create_async(
            path, data, ephemeral=ephemeral, makepath=makepath, include_data=True
        )

    async def start(self, timeout_s: float, *, creates_chroot: bool) -> None:
        await asyncio.to_thread(
            _start, self.kazoo, self._connect, timeout_s, creates_chroot=creates_chroot
        )

    async def stop(self) -> None:
        await asyncio.to_thread(_stop, self.kazoo)

    async def read_tree(self, path: str, shortcut: Shortcut | None) -> dict[str, Node]:
        return await asyncio.to_thread(read_tree, self.kazoo, path, shortcut)


def _start(client: "KazooClient", connect: str, timeout_s: float, *, creates_chroot: bool) -> None:
    wait_until_served(connect, timeout_s)
    _connect(client, timeout_s)
    if creates_chroot and client.exists_async("/").get() is None:
        from kazoo.client import KazooClient

        # A client cannot create the parents of its own chroot.
        hosts, _, chroot = connect.partition("/")
        outside = KazooClient(hosts)
        try:
            _connect(outside, timeout_s)
            outside.ensure_path("/" + chroot)
        finally:
            _stop(outside)


def _connect(client: "KazooClient", timeout_s: float) -> None:
    # Not `start`, which warns about a missing chroot.
    if not client.start_async().wait(timeout_s):
        raise TimeoutError(f"no answer within {timeout_s:g} s")


def _stop(client: "KazooClient") -> None:
    client.stop()
    client.close()
