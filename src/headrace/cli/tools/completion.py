"""`headrace completion bash|zsh|fish`: prints what makes a shell complete our commands, made from the tools' own tables."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module

from headrace.cli.shell.command_line import OK, ToolParser, run_tool

SHELLS = ("bash", "zsh", "fish")
# What an option's value is called where it is a file or a directory.
_FILES = ("FILE", "DIR", "DIRECTORY", "FILE.properties")
_PARSER_NAMES = ("make_parser", "_parser")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a tool, or without names what stands alone."""

    names: Sequence[str]
    about: str
    takes_value: bool = False
    words: Sequence[str] = ()  # the values there are, where that is known
    is_file: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A tool and what may follow its name."""

    tool: str
    about: str
    options: Sequence[Option]

    @property
    def alone(self) -> Option:
        """What may stand without an option before it."""
        nothing = Option(names=(), about="")
        return next((option for option in self.options if not option.names), nothing)


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser(
        "completion",
        "Print what makes a shell complete our commands. In ~/.bashrc: source <(headrace completion bash)."
        " In ~/.zshrc, after compinit: source <(headrace completion zsh)."
        " For fish: headrace completion fish > ~/.config/fish/completions/headrace.fish",
    )
    parser.usage = f"headrace completion {{{','.join(SHELLS)}}}"
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    return parser


def _work(options: argparse.Namespace) -> int:
    from headrace.cli.main import TOOLS

    table = [
        Completed(tool=name, about=about, options=_options_of(name))
        for name, about in TOOLS.items()
    ]
    print({"bash": bash_script, "zsh": zsh_script, "fish": fish_script}[options.shell](table))
    return OK


def _options_of(tool: str) -> list[Option]:
    module = import_module(f"headrace.cli.tools.{tool.replace('-', '_')}")
    make = next((getattr(module, name) for name in _PARSER_NAMES if hasattr(module, name)), None)
    return [] if make is None else options_of(make())


def options_of(parser: argparse.ArgumentParser) -> list[Option]:
    """What a parser tells of itself in its help."""
    return [
        Option(
            names=tuple(action.option_strings),
            about=(action.help or "").replace("\n", " "),
            takes_value=action.nargs != 0,
            words=tuple(map(str, action.choices or ())),
            is_file=action.metavar in _FILES,
        )
        for action in parser._actions  # what argparse has for its own help
        if action.help != argparse.SUPPRESS
    ]


def _long(option: Option) -> str:
    return next((name for name in option.names if name.startswith("--")), option.names[0])


# ---- bash


def bash_script(table: Iterable[Completed]) -> str:
    """A function for `complete -F`."""
    table = list(table)
    scripts = [f"kafka-{each.tool}.sh" for each in table]
    values, words = [], []
    for each in table:
        for option in each.options:
            if option.names and option.takes_value:
                patterns = " | ".join(f"'{each.tool} {name}'" for name in option.names)
                values.append(f"    {patterns}) {_bash_value(option)} ;;")
        names = [_long(option) for option in each.options if option.names] + list(each.alone.words)
        files = "; files=yes" if each.alone.is_file else ""
        words.append(f"    {each.tool}) words={shlex.quote(' '.join(names))}{files} ;;")
    tools = " ".join(each.tool for each in table)
    return "\n".join(
        (
            "_headrace() {",
            "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}",
            "    local command=${COMP_WORDS[0]##*/} tool=${COMP_WORDS[1]} words= files=",
            "    COMPREPLY=()",
            "    if [[ $command == kafka-*.sh ]]; then",
            "        tool=${command#kafka-} tool=${tool%.sh}",
            "    elif [[ $COMP_CWORD -eq 1 ]]; then",
            f"        COMPREPLY=($(compgen -W '{tools} --help --version' -- \"$current\"))",
            "        return",
            "    fi",
            '    case "$tool $previous" in',
            *values,
            "    esac",
            "    case $tool in",
            *words,
            "    esac",
            '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "    if [[ $files && $current != -* ]]; then",
            '        COMPREPLY+=($(compgen -f -- "$current"))',
            "    fi",
            "}",
            f"complete -o filenames -F _headrace headrace {' '.join(scripts)}",
        )
    )


def _bash_value(option: Option) -> str:
    if option.words:
        return f"COMPREPLY=($(compgen -W '{' '.join(option.words)}' -- \"$current\")); return"
    return 'COMPREPLY=($(compgen -f -- "$current")); return' if option.is_file else "return"


# ---- zsh


def zsh_script(table: Iterable[Completed]) -> str:
    """A function for `compdef`."""
    table = list(table)
    tools = [f"        {shlex.quote(f'{each.tool}:{each.about}')}" for each in table]
    cases = []
    for each in table:
        specs = [shlex.quote(_zsh_spec(option)) for option in each.options]
        cases.append(f"    {each.tool}) _arguments {' '.join(specs)} ;;" if specs else "")
    return "\n".join(
        (
            "#compdef headrace",
            "_headrace() {",
            "    if (( CURRENT == 2 )); then",
            "        local -a tools=(",
            *tools,
            "        )",
            "        _describe tool tools",
            "        return",
            "    fi",
            "    local tool=$words[2]",
            "    shift words",
            "    (( CURRENT-- ))",
            "    case $tool in",
            *filter(None, cases),
            "    esac",
            "}",
            "compdef _headrace headrace",
        )
    )


def _zsh_spec(option: Option) -> str:
    value = "value"
    action = "_files" if option.is_file else f"({' '.join(option.words)})" if option.words else ""
    if not option.names:
        return f"*:{value}:{action}"
    about = option.about
    for special in "\\[]:":
        about = about.replace(special, f"\\{special}")
    spec = f"*{_long(option)}[{about}]"
    return f"{spec}:{value}:{action}" if option.takes_value else spec


# ---- fish


def fish_script(table: Iterable[Completed]) -> str:
    """`complete` commands."""
    lines = ["complete -c headrace -f"]
    for each in table:
        about = _fish_quoted(each.about)
        lines.append(f"complete -c headrace -n __fish_use_subcommand -a {each.tool} -d {about}")
        head = f"complete -c headrace -n '__fish_seen_subcommand_from {each.tool}'"
        lines += [f"{head}{_fish_option(option)}" for option in each.options]
    return "\n".join(lines)


def _fish_option(option: Option) -> str:
    text = ""
    for name in option.names:
        if name.startswith("--"):
            text += f" -l {name[2:]}"
        elif len(name) == 2:
            text += f" -s {name[1:]}"
    if option.words:
        text += (
            f" -x -a {_fish_quoted(' '.join(option.words))}"
            if option.names
            else (f" -a {_fish_quoted(' '.join(option.words))}")
        )
    elif option.is_file:
        text += " -r -F" if option.names else " -F"
    elif option.takes_value and option.names:
        text += " -x"
    return f"{text} -d {_fish_quoted(option.about)}"


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
