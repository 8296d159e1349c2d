"""Consumer groups as `headrace consumer-groups` prints them and resets their offsets."""
