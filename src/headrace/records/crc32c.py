"""The checksum of record batches and producer snapshots: CRC-32C (Castagnoli)."""

from crc32c import crc32c

__all__ = ["crc32c"]
