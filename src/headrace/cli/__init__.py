"""The `headrace` command: one file per tool, with Kafka's flags. Entry point: `main.main`.

Tools go over the wire; only `server-start` runs a broker. Nothing heavy is imported before it is known which tool is
wanted: a tool's `--help` answers at once.
"""
