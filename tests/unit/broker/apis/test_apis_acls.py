"""ACLs on a broker without an authorizer. Codes and texts are those of Kafka 4.3."""

from headrace.broker.apis import create_acls, delete_acls, describe_acls
from headrace.wire.messages.create_acls import AclCreation, CreateAclsRequest
from headrace.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from headrace.wire.messages.describe_acls import DescribeAclsRequest
from tests.unit.broker.apis.one_broker import OneBroker, on_broker

SECURITY_DISABLED = 54


@on_broker()
async def test_there_are_none_and_nobody_can_make_any(broker: OneBroker) -> None:
    for version in range(1, 4):
        described = await broker.ask(describe_acls, DescribeAclsRequest(), version)
        assert described.error_code == SECURITY_DISABLED
        assert described.error_message == "No Authorizer is configured on the broker"
        creations = CreateAclsRequest(creations=[AclCreation(), AclCreation()])
        created = (await broker.ask(create_acls, creations, version)).results
        filters = DeleteAclsRequest(filters=[DeleteAclsFilter(), DeleteAclsFilter()])
        deleted = (await broker.ask(delete_acls, filters, version)).filter_results
        refused = [(SECURITY_DISABLED, "No Authorizer is configured.")] * 2
        assert [(each.error_code, each.error_message) for each in created] == refused
        assert [(each.error_code, each.error_message) for each in deleted] == refused
