"""One file per tool of the `headrace` command, named as the tool: its options, and the order of its steps.

`main.TOOLS` lists them. What several tools share, and what can be tested without a cluster, is in the packages beside this one.
"""
