"""Addresses and names in answers."""

from headrace.rest.links import Links

LINKS = Links("http://h:1", "auth/", "c 1")


def test_addresses_are_encoded() -> None:
    assert LINKS.url() == "http://h:1/v3/clusters/c%201"
    assert LINKS.url("consumer-groups", "a/b%", "lags") == (
        "http://h:1/v3/clusters/c%201/consumer-groups/a%2Fb%25/lags"
    )
    assert LINKS.related("brokers", 1) == {"related": "http://h:1/v3/clusters/c%201/brokers/1"}


def test_names() -> None:
    assert LINKS.resource_name(("topic", "t"), ("partition", 0), ("reassignment", None)) == (
        "crn://auth/kafka=c 1/topic=t/partition=0/reassignment"
    )
    assert Links("", "", "c").resource_name() == "crn:///kafka=c"


def test_resources_and_lists() -> None:
    found = LINKS.resource("K", ("x", 1), (("x", 1),), size=5)
    assert found == {
        "kind": "K",
        "metadata": {
            "self": "http://h:1/v3/clusters/c%201/x/1",
            "resource_name": "crn://auth/kafka=c 1/x=1",
        },
        "cluster_id": "c 1",
        "size": 5,
    }
    assert LINKS.collection("KList", ("x",), [found])["metadata"]["next"] is None
