"""Topics as `headrace topics` and others choose and print them."""
