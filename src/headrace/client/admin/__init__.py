"""Administration over the wire, blocking: topics, configs, groups, offsets, log directories of any Kafka cluster.

`admin` finds the broker to ask and asks again where that can help; the other modules are the questions, each a function
that takes an `Admin`. What a broker refuses for one item is a `Refusal` in the result; what it refuses as a whole is
raised as `Refused`.
"""
