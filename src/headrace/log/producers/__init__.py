"""What a log knows of its producers: state for idempotence and transactions, its snapshots, and its replay."""
