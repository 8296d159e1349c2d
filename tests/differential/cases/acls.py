"""DescribeAcls, CreateAcls, DeleteAcls on brokers without an authorizer."""

from headrace.wire.messages.create_acls import AclCreation, CreateAclsRequest
from headrace.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from headrace.wire.messages.describe_acls import DescribeAclsRequest
from tests.differential.requests import versions
from tests.differential.script import Script

ANY, TOPIC, LITERAL, READ, ALLOW = 1, 2, 3, 3, 3


def there_is_no_authorizer(script: Script) -> None:
    for version in versions(DescribeAclsRequest):
        described = DescribeAclsRequest(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=LITERAL,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        script.ask(described, version)
        creation = AclCreation(
            resource_type=TOPIC,
            resource_name="orders",
            resource_pattern_type=LITERAL,
            principal="User:alice",
            host="*",
            operation=READ,
            permission_type=ALLOW,
        )
        script.ask(CreateAclsRequest(creations=[creation, creation]), version)
        deletion = DeleteAclsFilter(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=LITERAL,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        script.ask(DeleteAclsRequest(filters=[deletion, deletion]), version)
