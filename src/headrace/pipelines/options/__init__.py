"""Options of `format("headrace")` as values. Pure."""
