"""One instance of the registry: reads `_schemas`, and writes to it while it is the primary. A rim module.

Owns the order of a write: judge the schema, then, one write at a time, decide on a state that has taken in everything,
write, and answer when the records were read back and counted. If another instance claimed to be primary meanwhile, the
records did not count and the write is refused, so that the client asks again.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from headrace.client.group_member import GroupMember, GroupProgram, Membership
from headrace.registry import errors
from headrace.registry.judging.judge import Judgement, Question
from headrace.registry.judging.judge_process import JudgeProcesses
from headrace.registry.rules.decisions import Registry
from headrace.registry.rules.lookup import FoundVersion
from headrace.registry.rules.submitted import SubmittedSchema
from headrace.registry.schemas_topic import (
    NewRecord,
    ReadRecord,
    RecordTooLarge,
    SchemasTopic,
    TopicFailed,
)
from headrace.registry.state.claims import Claims, claim_header, new_claim_header
from headrace.registry.state.names import SubjectName
from headrace.registry.state.records import (
    Entry,
    Key,
    NoopKey,
    decode,
    encode_key,
    encode_value,
    own_form,
)
from headrace.registry.state.schema_counts import SchemaCounts
from headrace.registry.state.subjects import Subjects
from headrace.registry.state.writes import Write

T = TypeVar("T")

_log = logging.getLogger(__name__)
_PROTOCOL_TYPE: Final = "sr"
_PROTOCOL: Final = "v0"
_ATTEMPTS: Final = 10
_CLAIM_AGAIN_S: Final = 0.5
_ROLE_S: Final = 10.0  # how long a write waits for a primary


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """An instance as the group's members know it, in Confluent's form."""

    version: int = 1
    host: str
    port: int
    master_eligibility: bool = True
    scheme: str = "http"

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"{self.scheme}://{self.host}:{self.port}"


class _Assignment(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    error: int = 0
    master: str | None = None
    master_identity: Identity | None = None


class InstanceSettings(NamedTuple):
    """What an instance needs to know."""

    bootstrap_servers: str
    identity: Identity
    topic: str = "_schemas"
    replication_factor: int = 3
    group_id: str = "schema-registry"
    client_settings: Mapping[str, Any] = {}
    session_timeout_ms: int = 10_000
    write_timeout_ms: int = 30_000


class Instance:
    """Open it; `registry` answers questions, `write` and `register` change what it knows."""

    def __init__(self, settings: InstanceSettings, registry: Registry) -> None:
        self._settings = settings
        self.registry = registry
        self._subjects: Subjects = registry.subjects
        self._claims = Claims()
        self._claim: int | None = (
            None  # ours, while this instance is the primary and ready to write
        )
        self._refused_offsets: set[int] = set()  # records that did not count, since the last write
        # Keys that other registries wrote in another form. Compaction takes both forms for different keys: the other
        # one is deleted when the key is written here.
        self._other_forms: dict[Key, bytes] = {}
        self._primary: Identity | None = None
        self._elected: Identity | None = None  # the last one that the group named
        self._claim_needed = asyncio.Event()
        self._role_known = asyncio.Event()  # who is primary, and, if this instance is, its claim
        self._topic = SchemasTopic(
            settings.bootstrap_servers,
            settings.topic,
            self._take,
            client_settings=settings.client_settings,
            write_timeout_ms=settings.write_timeout_ms,
        )
        self._judge = JudgeProcesses()
        self._writing = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._owner = f"{settings.identity.host}:{settings.identity.port}/{uuid.uuid4()}"
        self.unreadable = 0  # records that are none of a registry's
        self.counts = SchemaCounts()
        self.node_count = 0  # of the group; the instance that leads the group knows it

    async def open(self) -> None:
        """Read the topic, then join the group. Raises TopicFailed, and what the admin client raises."""
        await self._topic.open(replication_factor=self._settings.replication_factor)
        member = GroupMember(
            self._settings.bootstrap_servers,
            GroupProgram(
                group_id=self._settings.group_id,
                protocol_type=_PROTOCOL_TYPE,
                protocol_name=_PROTOCOL,
                metadata=msgspec.json.encode(self._settings.identity),
                assign=self._elect,
                on_assigned=self._assigned,
                on_lost=self._lost,
            ),
            client_id="headrace-schema-registry",
            session_timeout_ms=self._settings.session_timeout_ms,
            heartbeat_interval_ms=self._settings.session_timeout_ms // 4,
        )
        self._tasks = [
            asyncio.create_task(member.run(), name="registry-group"),
            asyncio.create_task(self._claim_when_primary(), name="registry-claim"),
        ]

    async def close(self) -> None:
        """Leave the group and stop reading."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._judge.close()
        await self._topic.close()

    # ---- what others ask

    @property
    def primary(self) -> Identity | None:
        """The instance that writes, if it is known."""
        return self._primary

    @property
    def is_primary(self) -> bool:
        """Whether this instance is to write."""
        return self._primary == self._settings.identity and self._primary is not None

    @property
    def failure(self) -> str | None:
        """Why this instance cannot be relied upon now."""
        if any(task.done() for task in self._tasks):
            return "the registry has stopped taking part in its group"
        return self._topic.failure

    @property
    def position(self) -> int:
        """The offset behind the last record of the topic that this instance knows."""
        return self._topic.position

    async def reached(self, position: int) -> None:
        """Wait until this instance knows what another one knew at a position. Raises RegistryError."""
        try:
            await self._topic.reached(position)
        except TopicFailed as failure:
            raise errors.store_timed_out(str(failure)) from failure

    async def role_known(self) -> None:
        """Wait, for a while, until it is known who writes, as after a start or a failover. Raises RegistryError."""
        try:
            async with asyncio.timeout(_ROLE_S):
                await self._role_known.wait()
        except TimeoutError:
            raise errors.unknown_primary() from None

    def _note_role(self) -> None:
        if self._primary is not None and (not self.is_primary or self._claim is not None):
            self._role_known.set()
        else:
            self._role_known.clear()

    async def judge(self, question: Question) -> Judgement:
        """Have a schema judged."""
        return await self._judge.judge(question)

    async def existing(
        self, subject: SubjectName, wanted: SubmittedSchema, *, normalize: bool
    ) -> FoundVersion | None:
        """The version that a registration asks for, if it is there already. Raises RegistryError."""
        registration = self.registry.registration
        if not registration.may_exist(subject, wanted):
            return None
        question = registration.lookup_question(subject, wanted, normalize=normalize)
        judgement = await self._judge.judge(question)
        if judgement.error is not None:
            return None  # the registration says what is wrong with it
        return registration.existing(subject, wanted, judgement)

    async def register(
        self,
        subject: SubjectName,
        wanted: SubmittedSchema,
        *,
        normalize: bool = False,
        force: bool = False,
    ) -> FoundVersion:
        """Register a schema at the primary. Raises RegistryError."""
        registration = self.registry.registration

        def question() -> Question:
            return registration.question(subject, wanted, normalize=normalize, force=force)

        for _ in range(_ATTEMPTS):
            asked = question()
            judgement = await self._judge.judge(asked)

            def decide(
                asked: Question = asked, judgement: Judgement = judgement
            ) -> Write[FoundVersion] | None:
                if question() != asked:
                    return None  # another version was registered while this one was judged
                return registration.register(subject, wanted, judgement, force=force)

            answer = await self.write(decide)
            if answer is not None:
                return answer
        raise errors.store_timed_out(f"subject '{subject}' does not stop changing")

    async def write(self, decide: Callable[[], Write[T] | None]) -> T | None:
        """Decide and write as the primary; None if the decision was put off. Raises RegistryError."""
        async with self._writing:
            claim = self._claim
            if claim is None:
                raise errors.unknown_primary()
            decision = decide()
            if decision is None:
                return None
            if decision.entries:
                await self._write(decision.entries, claim)
            return decision.answer

    # ---- being primary

    async def _claim_when_primary(self) -> None:
        while True:
            await self._claim_needed.wait()
            self._claim_needed.clear()
            while self.is_primary and (self._claim is None or self._claims.keys_to_repeat):
                try:
                    async with self._writing:
                        await self._make_claim()
                except errors.RegistryError as trouble:
                    _log.warning("cannot become the primary: %s; trying again", trouble)
                    await asyncio.sleep(_CLAIM_AGAIN_S)

    async def _make_claim(self) -> None:
        """Write a claim. Everything that was written under earlier claims is known once it was read back."""
        if self._claim is None:
            noop = NewRecord(encode_key(NoopKey()), None, [new_claim_header(self._owner)])
            (claim,) = await self._produce([noop])
            if self._claims.newest != claim:
                return  # another instance claimed behind it
        else:
            claim = self._claim
        await self._repeat(claim)
        if self.is_primary and self._claim is None:
            self._claim = claim
            self._note_role()
            _log.info("this instance is the primary, by the claim at offset %d", claim)

    async def _repeat(self, claim: int) -> None:
        """Write once more what holds for keys whose newest record does not count."""
        entries: list[Entry] = []
        deleted: list[bytes] = []
        for raw_key in self._claims.keys_to_repeat:
            key = own_form(decode(raw_key, None).key)
            if raw_key != encode_key(key):
                deleted.append(raw_key)
            entries += self.registry.current(key)
        if entries:
            await self._write(tuple(entries), claim, deleted)

    async def _write(
        self, entries: tuple[Entry, ...], claim: int, deleted: Sequence[bytes] = ()
    ) -> None:
        """Write entries as the primary; `deleted` are keys in other forms than ours. Raises RegistryError."""
        headers = [claim_header(claim)]
        records = [NewRecord(key, None, headers) for key in deleted]
        for each in entries:
            other = self._other_forms.get(each.key)
            if other is not None:
                records.append(NewRecord(other, None, headers))
            records.append(NewRecord(encode_key(each.key), encode_value(each.value), headers))
        offsets = await self._produce(records)
        if not self._refused_offsets.isdisjoint(offsets):
            self._give_up_claim()
            raise errors.store_failed("another instance has become the primary; try again")

    async def _produce(self, records: list[NewRecord]) -> list[int]:
        self._refused_offsets.clear()
        try:
            return await self._topic.write(records)
        except RecordTooLarge as failure:
            raise errors.record_too_large() from failure
        except TopicFailed as failure:
            # It is unknown whether the records were written: a new claim shuts them out if they come late.
            self._give_up_claim()
            raise errors.store_failed(str(failure)) from failure

    def _give_up_claim(self) -> None:
        self._claim = None
        self._note_role()
        self._claim_needed.set()

    # ---- what the group says

    def _elect(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        self.node_count = len(members)
        return elect(members, self._elected)

    def _assigned(self, membership: Membership) -> None:
        assignment = msgspec.json.decode(membership.assignment or b"{}", type=_Assignment)
        self._primary = self._elected = assignment.master_identity
        if not self.is_primary:
            self._claim = None
        _log.info("the primary is %s", None if self._primary is None else self._primary.url)
        self._note_role()
        self._claim_needed.set()

    def _lost(self) -> None:
        self._primary = self._claim = None
        self._note_role()
        self._claim_needed.set()

    # ---- what the topic says

    def _take(self, records: list[ReadRecord]) -> None:
        for record in records:
            try:
                entry = decode(record.key or b"", record.value, record.timestamp)
            except (msgspec.MsgspecError, UnicodeDecodeError) as wrong:
                self.unreadable += 1
                _log.warning("offset %d is no record of a registry: %s", record.offset, wrong)
                continue
            if self._claims.accept(record.offset, record.key or b"", record.headers):
                self._note_form(entry, record.key or b"")
                self.counts.note(entry, self._subjects)
                self._subjects.apply(entry)
            else:
                self._refused_offsets.add(record.offset)
                self._claim_needed.set()
                _log.warning(
                    "offset %d of %s was written by a former primary: it does not count",
                    record.offset,
                    self._settings.topic,
                )
        if self._claim is not None and self._claims.newest != self._claim:
            self._give_up_claim()

    def _note_form(self, entry: Entry, raw_key: bytes) -> None:
        key = own_form(entry.key)
        if raw_key == encode_key(key):
            return
        if entry.value is None:
            self._other_forms.pop(key, None)
        else:
            self._other_forms[key] = raw_key


def elect(members: Mapping[str, bytes], elected: Identity | None) -> Mapping[str, bytes]:
    """What every member is told: the primary stays; without one, the eligible instance with the smallest address is it."""
    eligible = []
    for member_id, metadata in members.items():
        try:
            identity = msgspec.json.decode(metadata, type=Identity)
        except msgspec.MsgspecError:
            continue
        if identity.master_eligibility:
            eligible.append((identity != elected, identity.url, member_id, identity))
    assignment = _Assignment()
    if eligible:
        *_, master, identity = min(eligible, key=lambda each: each[:3])
        assignment = _Assignment(master=master, master_identity=identity)
    return dict.fromkeys(members, msgspec.json.encode(assignment))
