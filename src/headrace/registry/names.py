"""Names of subjects: a subject lives in a context, and `:.ctx:name` names both. Pure."""

import re
from typing import Final, NamedTuple

DEFAULT_CONTEXT: Final = "."
WILDCARD: Final = ":*:"
_QUALIFIED: Final = re.compile(r":(\.[^:]*|\*):(.*)", re.DOTALL)


class SubjectName(NamedTuple):
    """A context and a name in it; the name is empty where the context itself is meant."""

    context: str
    name: str

    def __str__(self) -> str:
        """The name as it is stored and answered: unqualified in the default context."""
        return self.name if self.context == DEFAULT_CONTEXT else f":{self.context}:{self.name}"


def parse_subject(text: str) -> SubjectName:
    """The context and the name that a text means."""
    match = _QUALIFIED.fullmatch(text)
    if match is None:
        return SubjectName(DEFAULT_CONTEXT, text)
    return SubjectName(match[1], match[2])


def normal(text: str) -> str:
    """The one text for this subject."""
    return str(parse_subject(text))


def relative(text: str, context: str) -> str:
    """The subject that a schema of `context` means by this text: an unqualified one lies in the same context."""
    return text if _QUALIFIED.fullmatch(text) else str(SubjectName(context, text))
