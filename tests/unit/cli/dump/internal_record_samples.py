"""Records of internal topics in every version, and broken ones: key and value."""

from struct import pack

Sample = tuple[bytes, bytes | None]


def _text(text: str) -> bytes:
    data = text.encode()
    return pack(">h", len(data)) + data


def _member(*, instance: bytes = b"", times: bytes) -> bytes:
    return b"".join(
        (
            _text("id"),
            instance,
            _text("c"),
            _text("/h"),
            times,
            pack(">i", 3),
            b"abc",
            pack(">i", 0),
        )
    )


_NULL = pack(">h", -1)
_OFFSET_KEY = pack(">h", 1) + _text("g") + _text("t") + pack(">i", 3)
_GROUP_KEY = pack(">h", 2) + _text("g")
_SUBSCRIPTION = (
    pack(">hi", 3, 1) + _text("t") + pack(">i", -1) + pack(">i", 1) + _text("t")
    + pack(">iii", 2, 0, 1) + pack(">i", 7) + _text("rack")
)  # fmt: skip
_ASSIGNMENT = pack(">hi", 0, 1) + _text("t") + pack(">ii", 1, 0) + pack(">i", -1)

OFFSETS: list[Sample] = [
    (_OFFSET_KEY, pack(">hq", 0, 7) + _text("m") + pack(">q", 100)),
    (pack(">h", 0) + _OFFSET_KEY[2:], pack(">hq", 0, 7) + _text("m") + pack(">q", 100)),
    (_OFFSET_KEY, pack(">hq", 1, 7) + _text('mü"x') + pack(">qq", 100, 200)),
    (_OFFSET_KEY, pack(">hq", 2, 7) + _text("m") + pack(">q", 100)),
    (_OFFSET_KEY, pack(">hqi", 3, 7, 2) + _text("m") + pack(">q", 100)),
    (_OFFSET_KEY, pack(">hqi", 4, 7, 2) + b"\2m" + pack(">q", 100) + b"\0"),
    (_OFFSET_KEY, pack(">hqi", 4, 7, 2) + b"\2m" + pack(">q", 100) + b"\1\0\x10" + bytes(range(16))),
    (_OFFSET_KEY, None),
    (_GROUP_KEY, None),
    (
        _GROUP_KEY,
        pack(">h", 0) + _text("consumer") + pack(">i", 1) + _text("p") + _text("l") + pack(">i", 1)
        + _member(times=pack(">i", 5)),
    ),
    (
        _GROUP_KEY,
        pack(">h", 3) + _text("connect") + pack(">i", 1) + _NULL + _NULL + pack(">q", 5)
        + pack(">i", 1) + _member(instance=_NULL, times=pack(">ii", 5, 6)),
    ),
    (
        _GROUP_KEY,
        pack(">h", 3) + _text("consumer") + pack(">i", 1) + _text("range") + _text("id")
        + pack(">qi", 5, 1) + _text("id") + _text("one") + _text("c") + _text("/h")
        + pack(">iii", 5, 6, len(_SUBSCRIPTION)) + _SUBSCRIPTION
        + pack(">i", len(_ASSIGNMENT)) + _ASSIGNMENT,
    ),
    (pack(">h", 99) + _text("g"), b"x"),
    (_OFFSET_KEY, pack(">hq", 9, 7)),
    (_OFFSET_KEY, pack(">hq", 1, 7)),
    (b"\0", b"x"),
]  # fmt: skip

_TRANSACTION_KEY = pack(">h", 0) + _text("a")

TRANSACTIONS: list[Sample] = [
    (
        _TRANSACTION_KEY,
        pack(">hqhib", 0, 5, 1, 60000, 1) + pack(">i", 1) + _text("t") + pack(">iii", 2, 0, 1)
        + pack(">qq", 10, 11),
    ),
    (_TRANSACTION_KEY, pack(">hqhib", 0, 5, 1, 60000, 0) + pack(">i", -1) + pack(">qq", 10, 11)),
    (
        _TRANSACTION_KEY,
        pack(">hqhib", 1, 5, 1, 60000, 4) + b"\2\2t\2" + pack(">i", 3) + b"\0"
        + pack(">qq", 10, 11) + b"\0",
    ),
    (
        _TRANSACTION_KEY,
        pack(">hqhib", 1, 5, 1, 60000, 4) + b"\0" + pack(">qq", 10, 11)
        + b"\3\0\x08" + pack(">q", 4) + b"\1\x08" + pack(">q", 6) + b"\2\2" + pack(">h", 2),
    ),
    (
        _TRANSACTION_KEY,
        pack(">hqhib", 1, 5, 1, 60000, 4) + b"\0" + pack(">qq", 10, 11)
        + b"\2\1\x08" + pack(">q", 6) + b"\3\2" + pack(">h", 9),
    ),
    (_TRANSACTION_KEY, None),
    (pack(">h", 7), None),
]  # fmt: skip
