"""librdkafka without Python in its loop: the library inside the confluent-kafka wheel, called for thousands of records at once.

`Producer.send` hands a prepared array of messages to `rd_kafka_produce_batch`: one call of ctypes for the whole array, so
what is measured is librdkafka and the broker, not an interpreter's loop over records. Payloads stay where they are
(neither copied nor freed), so the caller keeps the array alive until `flush`.
"""

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_PRODUCER = 0
_ANY_PARTITION = -1
_COPY = 0x2
_BLOCK = 0x4
_CONF_OK = 0
_ERROR_BYTES = 512


class ClientFailed(Exception):
    """librdkafka refused something, or records were not delivered."""


class _Message(ctypes.Structure):
    """rd_kafka_message_t."""

    _fields_ = [
        ("err", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_length", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    ]


_DELIVERY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Message), ctypes.c_void_p)


@cache
def library() -> ctypes.CDLL:
    """The library that the wheel brings, with the calls that are used here."""
    import confluent_kafka

    package = Path(confluent_kafka.__file__).parent
    places = [package.with_name("confluent_kafka.libs"), package / ".dylibs"]
    found = [path for place in places for path in place.glob("librdkafka*") if path.is_file()]
    if not found:
        raise ClientFailed("this confluent-kafka wheel holds no librdkafka")
    loaded = ctypes.CDLL(str(found[0]))
    pointer, text, size, number = (
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_int,
    )
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "rd_kafka_version_str": (text, []),
        "rd_kafka_conf_new": (pointer, []),
        "rd_kafka_conf_set": (number, [pointer, text, text, text, size]),
        "rd_kafka_conf_set_dr_msg_cb": (None, [pointer, _DELIVERY]),
        "rd_kafka_new": (pointer, [number, pointer, text, size]),
        "rd_kafka_topic_new": (pointer, [pointer, text, pointer]),
        "rd_kafka_topic_destroy": (None, [pointer]),
        "rd_kafka_produce_batch": (
            number,
            [pointer, ctypes.c_int32, number, ctypes.POINTER(_Message), number],
        ),
        "rd_kafka_flush": (number, [pointer, number]),
        "rd_kafka_poll": (number, [pointer, number]),
        "rd_kafka_destroy": (None, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def version() -> str:
    text: bytes = library().rd_kafka_version_str()
    return text.decode()


class Messages:
    """An array of messages over payloads that it keeps alive."""

    def __init__(self, payloads: Sequence[bytes], count: int) -> None:
        self._buffers = [ctypes.create_string_buffer(payload, len(payload)) for payload in payloads]
        self.array = (_Message * count)()
        self.bytes_up_to = [0]
        for index in range(count):
            buffer = self._buffers[index % len(payloads)]
            self.array[index].payload = ctypes.addressof(buffer)
            self.array[index].length = len(buffer)
            self.bytes_up_to.append(self.bytes_up_to[-1] + len(buffer))

    def overwrite(self, beginning: bytes) -> None:
        """Change how every payload begins; only for messages that are sent as copies."""
        for buffer in self._buffers:
            ctypes.memmove(buffer, beginning, len(beginning))

    def __len__(self) -> int:
        return len(self.array)


class Producer:
    """One producer and its topics. Used by one thread; `send` blocks while the client's queue is full."""

    def __init__(self, settings: Mapping[str, str], *, reports_all: bool = False) -> None:
        """With `reports_all` librdkafka reports each delivery and not only failures, so that `flush` returns at the last one."""
        self._library = library()
        self._failed = 0
        self._error = 0
        self._topics: dict[str, int] = {}
        self._on_delivery = _DELIVERY(self._note_delivery)  # kept: C holds no reference to it
        conf = self._library.rd_kafka_conf_new()
        text = ctypes.create_string_buffer(_ERROR_BYTES)
        only_errors = str(not reports_all).lower()
        wanted = {**settings, "delivery.report.only.error": only_errors, "log_level": "0"}
        for name, value in wanted.items():
            done = self._library.rd_kafka_conf_set(
                conf, name.encode(), value.encode(), text, _ERROR_BYTES
            )
            if done != _CONF_OK:
                raise ClientFailed(text.value.decode())
        self._library.rd_kafka_conf_set_dr_msg_cb(conf, self._on_delivery)
        self._client = self._library.rd_kafka_new(_PRODUCER, conf, text, _ERROR_BYTES)
        if not self._client:
            raise ClientFailed(text.value.decode())

    def _note_delivery(self, _client: object, message: Any, _opaque: object) -> None:
        error = message.contents.err
        if error:
            self._failed += 1
            self._error = error

    def send(
        self, topic: str, messages: Messages, count: int | None = None, *, copy: bool = False
    ) -> None:
        """Enqueue the first `count` of these messages, or all. With `copy` the payloads may be changed afterwards."""
        wanted = len(messages) if count is None else count
        taken = self._library.rd_kafka_produce_batch(
            self._topic(topic),
            _ANY_PARTITION,
            _BLOCK | (_COPY if copy else 0),
            messages.array,
            wanted,
        )
        if taken != wanted:
            raise ClientFailed(
                f"{taken} of {wanted} records were taken, error {self._refusal(messages)}"
            )

    @staticmethod
    def _refusal(messages: Messages) -> int:
        return next((each.err for each in messages.array if each.err), 0)

    def _topic(self, name: str) -> int:
        handle = self._topics.get(name)
        if handle is None:
            handle = self._topics[name] = self._library.rd_kafka_topic_new(
                self._client, name.encode(), None
            )
        return handle

    def flush(self, timeout_s: float = 120.0) -> None:
        """Wait until everything was answered, and insist that all of it was taken."""
        left = self._library.rd_kafka_flush(self._client, int(timeout_s * 1000))
        if left or self._failed:
            raise ClientFailed(
                f"not delivered after {timeout_s:g} s: flush says {left}, {self._failed} failed, last error {self._error}"
            )

    def close(self) -> None:
        for handle in self._topics.values():
            self._library.rd_kafka_topic_destroy(handle)
        self._library.rd_kafka_destroy(self._client)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
