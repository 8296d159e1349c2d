"""Why a broker does not start, and what to do about it: the usual reasons, told as a person would tell them."""

from __future__ import annotations

import errno
import re
import socket
from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import Failure
from headrace.errors import NO_LOG_DIRECTORY, DiskFailed, HeadraceError

if TYPE_CHECKING:
    from headrace.settings.broker_settings import BrokerSettings

FEW_FILES = 4096
_ADDRESS = re.compile(r"\('([^']*)', (\d+)")
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


def explained_start(failure: HeadraceError | OSError, settings: BrokerSettings) -> Failure:
    """The failure of a start with these settings."""
    from headrace.broker.cluster.store_identity import WrongStore
    from headrace.coordination.store import StoreFailed, StoreInUse

    if isinstance(failure, WrongStore):
        return Failure(failure.what, hint=failure.hint)
    if isinstance(failure, StoreInUse):
        return _directory_in_use(settings.log_dirs[0])
    if isinstance(failure, StoreFailed) and settings.zookeeper_connect is not None:
        return Failure(
            f"cannot reach a ZooKeeper at {settings.zookeeper_connect}",
            why=str(failure.__cause__ or failure),
            hint="start one ('headrace zookeeper-start'), correct zookeeper.connect, or leave it out:"
            " then the broker is a cluster of its own",
        )
    if isinstance(failure, DiskFailed):
        return _disk_failed(failure)
    if isinstance(failure, OSError):
        return _os_failed(failure, settings)
    return Failure(str(failure))


def few_files(limit: int) -> str:
    """A remark about a limit of open files; none where it is high enough."""
    if limit >= FEW_FILES:
        return ""
    return (
        f"only {limit} files may be open at once: with many partitions or connections that is too few."
        f" Raise it before the start: 'ulimit -n 65536', or LimitNOFILE= of the service"
    )


def _directory_in_use(path: str) -> Failure:
    return Failure(
        f"cannot use the log directory {path}",
        why="another broker is running on it",
        hint="stop that one, or give this one its own: --override log.dirs=…",
    )


def _disk_failed(failure: DiskFailed) -> Failure:
    from headrace.log.log_dirs import LOCK_FILE

    cause = failure.__cause__
    path, _, reason = str(failure).removeprefix(NO_LOG_DIRECTORY).partition(": ")
    path = path.removesuffix(f"/{LOCK_FILE}")
    if "another broker" in reason:
        return _directory_in_use(path)
    hint = "choose another log directory: --override log.dirs=…"
    if isinstance(cause, OSError) and cause.errno in _READ_ONLY:
        hint = f"make it writable for this user (chown, chmod, mount), or {hint}"
    return Failure(f"cannot write to {path}", why=reason or str(failure), hint=hint)


def _os_failed(failure: OSError, settings: BrokerSettings) -> Failure:
    if failure.errno in (errno.EMFILE, errno.ENFILE):
        return Failure(
            "the broker cannot open what it needs",
            why="too many files are open for the limit of this process",
            hint="raise it before the start: ulimit -n 65536",
        )
    where = ", ".join(map(str, settings.listeners))
    bound = _ADDRESS.search(str(failure))
    if bound is not None:
        where = f"{bound[1]}:{bound[2]}"
    what = f"cannot listen on {where}"
    if failure.errno == errno.EADDRINUSE:
        port = int(bound[2]) if bound is not None else settings.listeners[0].port
        other = f"listeners=PLAINTEXT://127.0.0.1:{port + 1}"
        if port in {listener.port for listener in settings.headrace_http_listeners}:
            other = f"headrace.http.listeners=http://127.0.0.1:{port + 1}"
        return Failure(
            what,
            why="another program has the port, perhaps another broker",
            hint=f"stop it ('ss -ltnp sport = :{port}' names it), or take another port:"
            f" --override {other}",
        )
    if failure.errno in _READ_ONLY:
        return Failure(
            what, why="ports below 1024 are root's", hint="take a higher port in listeners"
        )
    if isinstance(failure, socket.gaierror) or failure.errno == errno.EADDRNOTAVAIL:
        return Failure(
            what,
            why=f"this machine has no such address: {failure.strerror}",
            hint="correct listeners; what others shall dial belongs into advertised.listeners",
        )
    return Failure(failure.strerror or str(failure), why=str(failure))
