"""Settings that are changed while the cluster runs.

Owns how a request's operations become the values that hold afterwards; what values are good is
the broker's knowledge (`ConfigRules`). The operations are applied here, by the only writer, so
that two clients that append to one list do not lose each other's words.
"""

import enum
from collections.abc import Mapping

import msgspec

from headrace.controller.changes import Change, ConfigChanged
from headrace.controller.core import MIN_ISR, Core, Decision, Group
from headrace.controller.elections import with_min_isr
from headrace.controller.values import ALL_BROKERS, ConfigKind
from headrace.coordination.nodes import DEFAULT_BROKER, ConfigNode
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused

_FOLDERS = {
    ConfigKind.TOPIC: "topics",
    ConfigKind.BROKER: "brokers",
    ConfigKind.CLIENT_METRICS: "client-metrics",
    ConfigKind.GROUP: "groups",
}
_MAX_VALUE_BYTES = 32_767


class ConfigOperation(enum.IntEnum):
    """Operation on a config key, numbered as in IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigEdit(msgspec.Struct, frozen=True, kw_only=True):
    """One key's change."""

    key: str
    operation: ConfigOperation = ConfigOperation.SET
    value: str | None = None


class ConfigWish(msgspec.Struct, frozen=True, kw_only=True):
    """The requested changes of one resource.

    With `replace_all` (the older AlterConfigs) keys that are not mentioned are unset.
    """

    kind: ConfigKind
    name: str
    edits: tuple[ConfigEdit, ...]
    replace_all: bool = False


class ConfigAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one resource's changes."""

    kind: ConfigKind
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class AlterConfigs(msgspec.Struct, frozen=True, kw_only=True):
    """Some settings shall change."""

    wishes: tuple[ConfigWish, ...]
    validate_only: bool = False

    def decide(self, core: Core) -> Decision[tuple[ConfigAnswer, ...]]:
        """Change the configs of each resource completely or, if one change is refused, not at all."""
        answers = []
        groups: list[Group] = []
        changes: list[Change] = []
        changed: dict[tuple[ConfigKind, str], dict[str, str]] = {}
        for wish in self.wishes:
            try:
                values = _values_after(core, wish)
            except Refused as refused:
                answers.append(
                    ConfigAnswer(
                        kind=wish.kind,
                        name=wish.name,
                        error=refused.error_code,
                        message=refused.message,
                    )
                )
                continue
            answers.append(ConfigAnswer(kind=wish.kind, name=wish.name))
            if values != core.state.config(wish.kind, wish.name):
                changed[wish.kind, wish.name] = values
                path = config_path(wish.kind, wish.name)
                if values:
                    groups.append((core.nodes.put(path, ConfigNode(values).encode()),))
                else:
                    groups.append(core.nodes.remove(path))
                changes.append(ConfigChanged(wish.kind, wish.name, values))
        if self.validate_only:
            return Decision(answer=tuple(answers))
        minimum_groups, minimum_changes = _minimum_changes(core, changed)
        return Decision(
            answer=tuple(answers),
            groups=(*groups, *minimum_groups),
            changes=(*changes, *minimum_changes),
        )


def _minimum_changes(
    core: Core, changed: Mapping[tuple[ConfigKind, str], Mapping[str, str]]
) -> tuple[list[Group], list[Change]]:
    """The writes of the partitions whose effective min.insync.replicas these configs change.

    Leaders go by the minimum in the partition's state, where the eligible leader replicas stand as well, so no order of
    these writes is wrong. A controller that ends half-way leaves the rest to the next one, which compares every
    partition with the configs.
    """
    common = changed.get((ConfigKind.BROKER, ALL_BROKERS))
    if common is None:
        common = core.state.config(ConfigKind.BROKER, ALL_BROKERS)
        names = [name for kind, name in changed if kind is ConfigKind.TOPIC]
    else:
        names = list(core.state.topics)
    groups: list[Group] = []
    changes: list[Change] = []
    for name in names:
        own = changed.get((ConfigKind.TOPIC, name))
        if own is None:
            own = core.state.config(ConfigKind.TOPIC, name)
        min_isr = core.configured_min_isr(own, common)
        for index, partition in enumerate(core.state.topics[name].partitions):
            after = with_min_isr(partition, min_isr)
            if after is not partition and not partition.is_new:
                group, change = core.write_partition(name, index, after)
                groups.append(group)
                changes.append(change)
    return groups, changes


def config_path(kind: ConfigKind, name: str) -> str:
    """Where a resource's settings stand."""
    if kind is ConfigKind.BROKER and name == ALL_BROKERS:
        name = DEFAULT_BROKER
    return ConfigNode.path(_FOLDERS[kind], name)


def config_at(path: str) -> tuple[ConfigKind, str] | None:
    """The resource whose settings stand at a path, or None for kinds that are not ours."""
    folder, name = ConfigNode.split(path)
    for kind, own_folder in _FOLDERS.items():
        if folder == own_folder:
            is_default = kind is ConfigKind.BROKER and name == DEFAULT_BROKER
            return kind, ALL_BROKERS if is_default else name
    return None


def _values_after(core: Core, wish: ConfigWish) -> dict[str, str]:
    _check_exists(core, wish)
    before = core.state.config(wish.kind, wish.name)
    values: dict[str, str] = {} if wish.replace_all else dict(before)
    for edit in wish.edits:
        _edit(core, wish.kind, edit, values)
    for value in values.values():
        if len(value.encode()) > _MAX_VALUE_BYTES:
            raise Refused(
                ErrorCode.INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value "
                f"size of {_MAX_VALUE_BYTES} bytes.",
            )
    fault = core.config_rules.check(wish.kind, wish.name, values)
    if fault is not None:
        raise Refused(ErrorCode.INVALID_CONFIG, fault)
    return values


def _check_exists(core: Core, wish: ConfigWish) -> None:
    if wish.kind is ConfigKind.TOPIC and wish.name not in core.state.topics:
        if not wish.name:
            raise Refused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        raise Refused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{wish.name}' does not exist."
        )
    if wish.kind is ConfigKind.BROKER and wish.name != ALL_BROKERS:
        if not wish.name.isdecimal():
            raise Refused(
                ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."
            )
        if int(wish.name) not in core.state.brokers:
            raise Refused(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {wish.name} found."
            )
        if any(edit.key == MIN_ISR for edit in wish.edits):
            # Kafka's words: the minimum belongs to a partition, whichever broker leads it.
            raise Refused(
                ErrorCode.INVALID_CONFIG,
                f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.",
            )
    if wish.kind is ConfigKind.GROUP and not wish.name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")


def _edit(core: Core, kind: ConfigKind, edit: ConfigEdit, values: dict[str, str]) -> None:
    if edit.operation is ConfigOperation.DELETE:
        values.pop(edit.key, None)
        return
    if edit.value is None:
        kind_name = kind.name.lower().replace("_", " ")
        raise Refused(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for {kind_name} configs: {edit.key}",
        )
    if edit.operation is ConfigOperation.SET:
        values[edit.key] = edit.value
        return
    if not core.config_rules.is_list(kind, edit.key):
        raise Refused(
            ErrorCode.INVALID_CONFIG,
            f"Can't {edit.operation.name} to key {edit.key} because its type is not LIST.",
        )
    present = _parts(core, kind, edit.key, values)
    for part in edit.value.split(","):
        if edit.operation is ConfigOperation.SUBTRACT:
            present.pop(part, None)
        else:
            present[part] = None
    values[edit.key] = ",".join(present)


def _parts(core: Core, kind: ConfigKind, key: str, values: Mapping[str, str]) -> dict[str, None]:
    value = values.get(key)
    if value is None:
        value = core.config_rules.default(kind, key) or ""
    return dict.fromkeys(part for part in value.split(",") if part)
