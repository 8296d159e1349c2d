"""Records as lines of text: what the console producer reads and the console consumer prints."""
