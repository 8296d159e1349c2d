"""Names of subjects: a subject lies in a context, and `:.ctx:name` names both. Pure."""

import re
from typing import Final, NamedTuple

DEFAULT_CONTEXT: Final = "."
GLOBAL_CONTEXT: Final = ".__GLOBAL"  # its settings apply to every context that has none of its own
ANY_CONTEXT: Final = "*"
WILDCARD: Final = ":*:"
_CONTEXT_PREFIX: Final = ":."
_RESERVED_NAMES: Final = ("__GLOBAL", "__EMPTY")
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class SubjectName(NamedTuple):
    """A context and a name in it; the name is empty where the context itself is meant."""

    context: str
    name: str

    def __str__(self) -> str:
        """The name as it is stored and answered: unqualified in the default context."""
        return self.qualified_context + self.name

    @property
    def qualified_context(self) -> str:
        """The context between colons; empty for the default one."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"

    @property
    def is_context(self) -> bool:
        """Whether the context itself is meant."""
        return not self.name


def parse_subject(text: str) -> SubjectName:
    """The context and the name that a text means."""
    if text.startswith(WILDCARD):
        return SubjectName(ANY_CONTEXT, text.removeprefix(WILDCARD))
    if not text.startswith(_CONTEXT_PREFIX):
        return SubjectName(DEFAULT_CONTEXT, text)
    context, _, name = text[1:].partition(":")
    return SubjectName(context, name)


def is_qualified(text: str) -> bool:
    """Whether a text names a context, or the wildcard."""
    return text.startswith((_CONTEXT_PREFIX, WILDCARD))


def is_valid_subject(subject: SubjectName) -> bool:
    """Whether schemas may be registered under a name."""
    return (
        bool(subject.name)
        and subject.context not in (GLOBAL_CONTEXT, ANY_CONTEXT)
        and is_valid_scope(subject)
    )


def is_valid_scope(subject: SubjectName) -> bool:
    """Whether a subject, or a context, may have settings."""
    return subject.name not in _RESERVED_NAMES and not _CONTROL_CHARACTER.search(str(subject))


def normal(text: str) -> str:
    """The one text for this subject."""
    return str(parse_subject(text))


def relative(text: str, context: str) -> str:
    """The subject that a schema of `context` means by this text: an unqualified one lies in the same context."""
    subject = parse_subject(text)
    return str(subject if subject.context != DEFAULT_CONTEXT else SubjectName(context, text))
