"""An expected refusal on its way to the one place that turns it into an answer.

Raised and caught within the decision about one topic, partition or resource; never leaves the
package.
"""

from headrace.wire.error_code import ErrorCode


class Refusal(Exception):
    """A code, and a text where the code alone does not say it."""

    def __init__(self, code: ErrorCode, text: str | None = None) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text
