"""Settings changed while the cluster runs."""

import pytest

from headrace.controller.configs import (
    AlterConfigs,
    ConfigAnswer,
    ConfigEdit,
    ConfigOperation,
    ConfigWish,
)
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.controller.values import ALL_BROKERS, ConfigKind
from headrace.wire.error_code import ErrorCode
from tests.unit.controller.cluster_model import ClusterModel


@pytest.fixture
def model() -> ClusterModel:
    model = ClusterModel(0)
    model.do(CreateTopics(topics=(NewTopic(name="t", configs={"a": "1", "b": "2"}),)))
    return model


def alter(
    model: ClusterModel,
    *edits: ConfigEdit,
    kind: ConfigKind = ConfigKind.TOPIC,
    name: str = "t",
    replace_all: bool = False,
    validate_only: bool = False,
) -> ConfigAnswer:
    wish = ConfigWish(kind=kind, name=name, edits=edits, replace_all=replace_all)
    (answer,) = model.do(AlterConfigs(wishes=(wish,), validate_only=validate_only))
    model.check()
    return answer


def values(model: ClusterModel, kind: ConfigKind = ConfigKind.TOPIC, name: str = "t") -> object:
    return dict(model.state.config(kind, name))


def test_set_and_delete(model: ClusterModel) -> None:
    delete = ConfigEdit(key="b", operation=ConfigOperation.DELETE)
    answer = alter(model, ConfigEdit(key="a", value="3"), delete)
    assert answer.error is ErrorCode.NONE
    assert values(model) == {"a": "3"}
    alter(model, ConfigEdit(key="a", operation=ConfigOperation.DELETE))
    assert values(model) == {}
    alter(model, ConfigEdit(key="c", value="4"))
    assert values(model) == {"c": "4"}


def test_the_older_request_replaces_everything(model: ClusterModel) -> None:
    alter(model, ConfigEdit(key="c", value="4"), replace_all=True)
    assert values(model) == {"c": "4"}


def test_lists_are_appended_to_and_subtracted_from(model: ClusterModel) -> None:
    append = ConfigEdit(key="policy.list", operation=ConfigOperation.APPEND, value="compact,delete")
    alter(model, append, replace_all=True)
    assert values(model) == {"policy.list": "delete,compact"}, "the default comes first"
    subtract = ConfigEdit(
        key="policy.list", operation=ConfigOperation.SUBTRACT, value="delete,other"
    )
    alter(model, subtract)
    assert values(model) == {"policy.list": "compact"}


def test_broker_settings_for_one_and_for_all(model: ClusterModel) -> None:
    edit = ConfigEdit(key="x", value="1")
    assert alter(model, edit, kind=ConfigKind.BROKER, name="0").error is ErrorCode.NONE
    assert alter(model, edit, kind=ConfigKind.BROKER, name=ALL_BROKERS).error is ErrorCode.NONE
    model.take_over()
    assert values(model, ConfigKind.BROKER, "0") == {"x": "1"}
    assert values(model, ConfigKind.BROKER, ALL_BROKERS) == {"x": "1"}
    assert model.state.topic_setting("t", "x", "default") == "1"
    assert model.state.topic_setting("t", "a", "default") == "1"
    assert model.state.topic_setting("t", "nothing", "default") == "default"


@pytest.mark.parametrize(
    ("kind", "name", "edit", "code", "text"),
    [
        (
            ConfigKind.TOPIC,
            "x",
            ConfigEdit(key="a", value="1"),
            3,
            "The topic 'x' does not exist.",
        ),
        (
            ConfigKind.TOPIC,
            "",
            ConfigEdit(key="a", value="1"),
            42,
            "Default topic resources are not allowed.",
        ),
        (
            ConfigKind.BROKER,
            "9",
            ConfigEdit(key="a", value="1"),
            102,
            "No broker with id 9 found.",
        ),
        (
            ConfigKind.BROKER,
            "x",
            ConfigEdit(key="a", value="1"),
            42,
            "Unable to parse broker name as a base 10 number.",
        ),
        (
            ConfigKind.GROUP,
            "",
            ConfigEdit(key="a", value="1"),
            42,
            "Default group resources are not allowed.",
        ),
        (
            ConfigKind.TOPIC,
            "t",
            ConfigEdit(key="a", value="bad"),
            40,
            "Invalid value bad for configuration a",
        ),
        (
            ConfigKind.TOPIC,
            "t",
            ConfigEdit(key="a"),
            40,
            "Null value not supported for topic configs: a",
        ),
        (
            ConfigKind.TOPIC,
            "t",
            ConfigEdit(key="a", operation=ConfigOperation.APPEND, value="1"),
            40,
            "Can't APPEND to key a because its type is not LIST.",
        ),
        (
            ConfigKind.TOPIC,
            "t",
            ConfigEdit(key="a", value="x" * 32_768),
            40,
            "The configuration value cannot be added because it exceeds the maximum value size of "
            "32767 bytes.",
        ),
    ],
)
def test_refusals(
    model: ClusterModel, kind: ConfigKind, name: str, edit: ConfigEdit, code: int, text: str
) -> None:
    answer = alter(model, edit, kind=kind, name=name)
    assert (answer.error, answer.message) == (ErrorCode(code), text)
    assert values(model) == {"a": "1", "b": "2"}


def test_a_resource_is_changed_whole_or_not_at_all(model: ClusterModel) -> None:
    alter(model, ConfigEdit(key="a", value="9"), ConfigEdit(key="b", value="bad"))
    assert values(model) == {"a": "1", "b": "2"}


def test_validation_changes_nothing(model: ClusterModel) -> None:
    answer = alter(model, ConfigEdit(key="a", value="9"), validate_only=True)
    assert answer.error is ErrorCode.NONE
    assert values(model) == {"a": "1", "b": "2"}
