"""The HTTP API of the REST proxy: routes of versions 2 and 3, request bodies, answers, errors."""
