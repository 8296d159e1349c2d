"""A PostgreSQL of its own for one test, where Debian's is installed: on a free port, trusting everybody, gone afterwards."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.server_process import free_port

SETTINGS = "-c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"


@contextmanager
def running_postgres() -> Iterator[str]:
    """The URL of a database. Skips the test where there is no PostgreSQL, or no psycopg to reach it with."""
    pytest.importorskip("psycopg", reason="PostgreSQL is reached with the package psycopg")
    binaries = _binaries()
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="headrace-postgres-") as home:
        account = _account()
        if account is not None:
            os.chown(home, account.pw_uid, account.pw_gid)

        def call(*command: str) -> None:
            subprocess.run(
                [binaries / command[0], "-D", f"{home}/data", *command[1:]],
                check=True,
                cwd=home,
                user=None if account is None else account.pw_uid,
                stdout=subprocess.DEVNULL,
            )

        call("initdb", "-U", "headrace", "-A", "trust", "--no-sync")
        call("pg_ctl", "-w", "-l", f"{home}/log", "-o", f"-p {port} {SETTINGS}", "start")
        try:
            yield f"postgresql://headrace@127.0.0.1:{port}/postgres"
        finally:
            call("pg_ctl", "-m", "immediate", "stop")


def _binaries() -> Path:
    found = shutil.which("pg_ctl")
    if found is not None:
        return Path(found).resolve().parent
    for versioned in sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), reverse=True):
        return versioned.parent  # where Debian keeps what is not for every user's PATH
    pytest.skip("PostgreSQL is not installed (Debian package postgresql)")


def _account() -> pwd.struct_passwd | None:
    """PostgreSQL does not run as root."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None
