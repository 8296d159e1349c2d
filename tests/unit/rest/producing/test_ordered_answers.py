"""Answers in the order of their records, whenever they come."""

from headrace.rest.producing.ordered_answers import OrderedAnswers


def test_answers_wait_for_those_before_them() -> None:
    called: list[int] = []
    answers = OrderedAnswers(lambda: called.append(1))
    first, second, third = (answers.place() for _ in range(3))
    second(b"2")
    assert (answers.take(), called, answers.waiting) == ([], [], 2)
    first(b"1")
    assert called == [1]
    assert answers.ready_bytes == 2
    assert answers.take() == [b"1", b"2"]
    third(b"3")
    assert (answers.take(), len(answers), answers.ready_bytes) == ([b"3"], 0, 0)
    assert called == [1, 1]
