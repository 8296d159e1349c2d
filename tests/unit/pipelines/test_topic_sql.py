"""SQL over topics: which topics a query names, and how rows and offsets are shown."""

from headrace.pipelines.topic_sql import Covered, text_table, with_views


def test_topics_become_views() -> None:
    text = "select * from topic(orders) o join TOPIC( 'my-topic.v1' ) using (id), topic(orders)"
    plain, views = with_views(text)
    assert views == {"topic_0_orders": "orders", "topic_1_my_topic_v1": "my-topic.v1"}
    assert plain == (
        "select * from topic_0_orders o join topic_1_my_topic_v1 using (id), topic_0_orders"
    )


def test_topics_whose_names_differ_in_signs_only_stay_apart() -> None:
    _, views = with_views("select * from topic(a.b), topic(a-b)")
    assert sorted(views.values()) == ["a-b", "a.b"]
    assert len(views) == 2


def test_a_table_of_text() -> None:
    assert text_table(["id", "name"], [[1, None], [22, "Ann"]]).splitlines() == [
        "id | name",
        "---+-----",
        "1  | NULL",
        "22 | Ann",
    ]
    assert text_table(["n"], []).splitlines() == ["n", "-"]


def test_offsets_that_were_covered() -> None:
    assert str(Covered(topic="t", ranges=[(0, 3, 10), (1, 4, 4)])) == "t: offsets 0: 3-9"
    assert str(Covered(topic="t", ranges=[(0, 0, 0)])) == "t: no records"
