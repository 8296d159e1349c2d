"""The process that judges schemas: a schema that takes too long, or ends it, costs one request."""

import asyncio
import os
import signal

from headrace.registry.judging.judge import Judgement, Question, SchemaText
from headrace.registry.judging.judge_process import JudgeProcess, JudgeProcesses

GOOD = Question(SchemaText("AVRO", '"int"'))


async def with_judge(judge: JudgeProcess, *questions: Question) -> list[Judgement]:
    try:
        return [await judge.judge(question) for question in questions]
    finally:
        await judge.close()


def test_it_judges() -> None:
    bad = Question(SchemaText("AVRO", '{"type":"nothing"}'))
    good, wrong = asyncio.run(with_judge(JudgeProcess(), GOOD, bad))
    assert (good.error, good.text) == (None, '"int"')
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
    assert after.text == '"string"'


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


def test_a_schema_that_takes_long_does_not_hold_up_the_others() -> None:
    async def ask_behind_one_that_hangs() -> Judgement:
        judges = JudgeProcesses()
        try:
            await judges.judge(GOOD)
            hanging = judges._idle[-1]
            assert hanging._process is not None
            os.kill(hanging._process.pid, signal.SIGSTOP)
            asked = asyncio.create_task(judges.judge(Question(SchemaText("AVRO", '"long"'))))
            await asyncio.sleep(0)
            answered = await judges.judge(Question(SchemaText("AVRO", '"string"')))
            assert not asked.done()
            os.kill(hanging._process.pid, signal.SIGCONT)
            assert (await asked).text == '"long"'
            return answered
        finally:
            await judges.close()

    assert asyncio.run(ask_behind_one_that_hangs()).text == '"string"'


def test_answers_are_remembered() -> None:
    async def ask_twice() -> tuple[Judgement, Judgement]:
        judges = JudgeProcesses()
        try:
            return await judges.judge(GOOD), await judges.judge(GOOD)
        finally:
            await judges.close()

    first, second = asyncio.run(ask_twice())
    assert first is second
