"""Files of a log directory as text, for `headrace dump-log`."""
