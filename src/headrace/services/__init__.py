"""What Headrace's HTTP programs share: how they start, stop, answer errors, tell their health and their metrics.

A program is a Starlette application. Its middleware, from the outside in: `http_service.Watched` (access log, metrics),
`authentication.Authentication` (who asks), then its own. `http_service.serve` runs it, over TLS if it is given a context
(`tls`). Nothing here knows the broker.
"""
