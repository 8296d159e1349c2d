"""Exceptions that several packages raise or catch. Expected refusals are values (`wire.error_code.ErrorCode`), not exceptions.

HeadraceError
├── MalformedMessage      the peer broke the wire protocol: its connection is closed
├── CorruptBatch          bytes that claim to be a record batch are not one
│   └── BatchTooLarge     opening it would exceed a limit (decompression bombs)
├── DiskFailed            the operating system refused: the log directory goes offline
│   └── DiskFull          no space, or no free file descriptor: refused, and tried again later
├── LogClosed             the log was closed or its directory is offline
└── SettingError          a setting is unknown or malformed; the text says which and what is near it
"""

from typing import Final

# How a DiskFailed begins that names every log directory with its error, because none of them can be used.
NO_LOG_DIRECTORY: Final = "no usable log directory: "


class HeadraceError(Exception):
    """Root of everything that Headrace raises on purpose."""


class MalformedMessage(HeadraceError):
    """The peer sent bytes that are not a message of the protocol."""


class CorruptBatch(HeadraceError):
    """Bytes that should be a record batch fail its checks."""


class BatchTooLarge(CorruptBatch):
    """Opening the batch would exceed a limit set against decompression bombs."""


class DiskFailed(HeadraceError):
    """The operating system refused a file operation. Never retried in place."""


class DiskFull(DiskFailed):
    """There is no space left, or no free file descriptor. Nothing was written; it may be tried again."""


class LogClosed(HeadraceError):
    """The partition log was closed, or its directory went offline."""


class SettingError(HeadraceError):
    """A setting is unknown or malformed."""
