"""The runs, one family a file: each says what it sends and which figures it notes."""
