"""Programs for those who work on Headrace: what they generate is checked in, and a test compares it."""
