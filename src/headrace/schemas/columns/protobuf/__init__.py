"""Protobuf messages as Arrow columns, in both directions, by the protobuf library. Pure."""
