"""One file per API: its versions, what each added, what it answers. Listed in `broker.api_table`.

A handler takes the decoded request and its context; its dependencies are keyword parameters, bound once in
`broker.wiring`, so that a test calls it with what it likes. It returns a response, or a coroutine or future of one.
"""
