"""Transaction coordinator: the transactions of each transactional id, one core for each partition of `__transaction_state`.

The core decides about values. Writing markers to partitions is an effect that the broker carries out.
"""
