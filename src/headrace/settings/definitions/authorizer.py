"""Settings that Kafka's authorizer reads from the broker's file; the broker itself does not define them.

DescribeConfigs lists them only where they are set.
"""

from headrace.settings.definitions.setting import refused
from headrace.settings.definitions.value_type import BOOLEAN, STRING

SETTINGS = (
    refused("super.users", STRING, "", "Users who may do everything, as User:name;User:name."),
    refused(
        "allow.everyone.if.no.acl.found",
        BOOLEAN,
        False,
        "Let everybody use a resource that no ACL names.",
    ),
)
