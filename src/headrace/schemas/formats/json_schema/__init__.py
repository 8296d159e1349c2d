"""The schema language JSON: parsing, printing and comparing schemas. Pure."""
