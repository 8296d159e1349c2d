"""The schema language PROTOBUF: parsing, printing, normalising and comparing schemas."""
