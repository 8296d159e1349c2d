"""What Headrace's HTTP programs share: how they start, stop, answer errors, tell their health and their metrics."""
