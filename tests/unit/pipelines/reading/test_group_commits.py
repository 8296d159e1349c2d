"""A group that refuses commits costs neither a request nor a warning per poll."""

from headrace.pipelines.reading.group_commits import GroupCommits

HERE, FURTHER = {"t": {"0": 5}}, {"t": {"0": 9}}


def test_the_same_place_is_committed_once() -> None:
    commits = GroupCommits()
    assert commits.is_due(HERE, 0.0)
    commits.succeeded(HERE)
    assert not commits.is_due(HERE, 100.0)
    assert commits.is_due(FURTHER, 0.0)


def test_a_refused_commit_is_tried_again_after_pauses_that_grow_and_is_told_once() -> None:
    commits = GroupCommits()
    tried, told = [], 0
    for now_s in range(600):  # a poll per second
        if commits.is_due(HERE if now_s < 300 else FURTHER, float(now_s)):
            tried.append(now_s)
            told += commits.failed("the group has members", float(now_s))
    assert told == 1
    assert tried[:7] == [0, 1, 3, 7, 15, 31, 63]
    assert len(tried) < 17
    assert commits.failed("the coordinator is away", 600.0), "another reason is news"
    assert commits.is_due(HERE, 700.0)
    commits.succeeded(HERE)
    assert commits.failed("the group has members", 701.0), "and so is the same one later on"
    assert commits.is_due(FURTHER, 702.0), "the pauses begin anew"
