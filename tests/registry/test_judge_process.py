"""The process that judges schemas: a schema that takes too long, or ends it, costs one request."""

import asyncio
import os
import signal

from headrace.registry.judge import Judgement, Question, SchemaText
from headrace.registry.judge_process import JudgeProcess

GOOD = Question(SchemaText("AVRO", '"int"'))


async def with_judge(judge: JudgeProcess, *questions: Question) -> list[Judgement]:
    try:
        return [await judge.judge(question) for question in questions]
    finally:
        await judge.close()


def test_it_judges() -> None:
    bad = Question(SchemaText("AVRO", '{"type":"nothing"}'))
    good, wrong = asyncio.run(with_judge(JudgeProcess(), GOOD, bad))
    assert (good.error, good.canonical) == (None, '"int"')
    assert wrong.error is not None


def test_a_schema_that_takes_too_long_is_refused() -> None:
    (late,) = asyncio.run(with_judge(JudgeProcess(max_seconds=0.001), GOOD))
    assert late.error is not None
    assert "within" in late.error


def test_after_a_crash_the_next_question_is_answered() -> None:
    async def crash_and_ask() -> tuple[Judgement, Judgement]:
        judge = JudgeProcess()
        try:
            await judge.judge(GOOD)
            assert judge._process is not None
            os.kill(judge._process.pid, signal.SIGSTOP)
            asked = asyncio.create_task(judge.judge(Question(SchemaText("AVRO", '"long"'))))
            await asyncio.sleep(0)
            os.kill(judge._process.pid, signal.SIGKILL)
            return await asked, await judge.judge(Question(SchemaText("AVRO", '"string"')))
        finally:
            await judge.close()

    crashed, after = asyncio.run(crash_and_ask())
    assert crashed.error is not None
    assert after.canonical == '"string"'


def test_deep_nesting_is_refused_in_every_language() -> None:
    depth = 3_000
    avro = '{"type":"array","items":' * depth + '"int"' + "}" * depth
    json = '{"not":' * depth + "{}" + "}" * depth
    proto = 'syntax = "proto3";' + "message M {" * depth + "}" * depth
    questions = [
        Question(SchemaText(kind, text))
        for kind, text in (("AVRO", avro), ("JSON", json), ("PROTOBUF", proto))
    ]
    judge = JudgeProcess()
    assert all(each.error is not None for each in asyncio.run(with_judge(judge, *questions)))
