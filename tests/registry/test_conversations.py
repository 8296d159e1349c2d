"""Headrace's registry answers as Confluent's does: the answers of Confluent's registry are recorded beside this test.

With HEADRACE_CONFLUENT_REGISTRY, the address of a registry of Confluent's with an empty topic, the recorded answers are
compared with its; with HEADRACE_RECORD=1 they are recorded anew.
"""

import json
import os
from pathlib import Path

import pytest

from tests.registry.conversation import Conversation
from tests.registry.conversations import CONVERSATIONS, DIFFERENT, Json
from tests.support.headrace_process import HeadraceProcess
from tests.support.registry_process import RegistryProcess

RECORDED = Path(__file__).with_name("confluent_answers.json")
CONFLUENT = os.environ.get("HEADRACE_CONFLUENT_REGISTRY")


def recorded() -> dict[str, list[Json]]:
    answers: dict[str, list[Json]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return answers


@pytest.fixture(scope="module")
def ours(
    broker: HeadraceProcess, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Json]]:
    """The answers of a registry of its own, in the order in which Confluent's was asked.

    The order matters: a schema keeps its id in all subjects, also in those of an earlier conversation.
    """
    properties = {"kafkastore.topic": "_conversations", "schema.registry.group.id": "conversations"}
    directory = tmp_path_factory.mktemp("conversations")
    brokers = f"127.0.0.1:{broker.port}"
    with RegistryProcess(directory, brokers, properties=properties) as registry:
        registry.await_primary()
        assert registry.ask("DELETE", "/config")[0] == 200
        return {
            title: Conversation(registry.url).answers(asks) for title, asks in CONVERSATIONS.items()
        }


@pytest.mark.parametrize("title", CONVERSATIONS)
def test_answers_are_confluents(ours: dict[str, list[Json]], title: str) -> None:
    answers, expected = ours[title], recorded()[title]
    assert len(answers) == len(expected)
    differing = DIFFERENT.get(title, {})
    for index, (ask, found, theirs) in enumerate(
        zip(CONVERSATIONS[title], answers, expected, strict=True)
    ):
        if index in differing:
            status, reason = differing[index]
            assert (found[0], found != theirs) == (status, True), (title, index, reason, found)
        else:
            assert found == theirs, (title, index, ask)


@pytest.mark.skipif(CONFLUENT is None, reason="HEADRACE_CONFLUENT_REGISTRY names no registry")
def test_the_recorded_answers_are_confluents() -> None:
    answers = {
        title: Conversation(str(CONFLUENT)).answers(asks) for title, asks in CONVERSATIONS.items()
    }
    if os.environ.get("HEADRACE_RECORD"):
        lines = (
            f"{json.dumps(title)}: [\n"
            + ",\n".join(json.dumps(each, ensure_ascii=False) for each in told)
            + "\n]"
            for title, told in answers.items()
        )
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    assert answers == recorded()
