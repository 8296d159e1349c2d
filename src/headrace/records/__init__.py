"""The record batch (format v2), as bytes.

Entry points: `batch_view` reads and stamps header fields without opening a batch, `batch_builder` makes one,
`batch_reader` opens one. Knows nothing of files, sockets or who asks.
"""
