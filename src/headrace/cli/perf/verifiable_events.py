"""Events of the verifiable tools, each printed as one JSON object with its time."""

from __future__ import annotations

import json
import time


class Events:
    """One JSON object per line, with the time and the name first. Each goes out at once: somebody reads along."""

    @staticmethod
    def print(name: str, **fields: object) -> None:
        event = {"timestamp": int(time.time() * 1000), "name": name, **fields}
        print(json.dumps(event, separators=(",", ":")), flush=True)
