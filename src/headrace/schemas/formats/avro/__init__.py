"""The schema language AVRO: parsing, printing, normalising and comparing schemas. Pure."""
