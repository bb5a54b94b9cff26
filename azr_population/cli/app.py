"""Parts of all commands: the group, common options, exit codes, errors in one line."""

import errno
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import rich_click as click
from click.exceptions import Exit
from click.shell_completion import CompletionItem, shell_complete

from azr_population import __version__
from azr_population.config.schema import Config, Dtype
from azr_population.config.section import groups, meant
from azr_population.errors import UserError, did_you_mean
from azr_population.printable import printable, redact
from azr_population.registry import EVERYTHING, trust

NAME = "azr-population"
LONGEST_LINE = 2000
"""Most characters of an error message: it may quote a value with millions."""
_OF_THE_MACHINE = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE,
     errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENAMETOOLONG, errno.ELOOP, errno.EEXIST,
     errno.ENOTDIR)
)  # fmt: skip
"""Errors of a disk, a share or a name that was given, which the user can mend."""
HELP = {
    "theme": "default-slim",
    "max_width": 100,
    "commands_before_options": True,
    "show_arguments": True,
    "options_table_column_types": ["opt_all_metavar", "help"],
    "options_table_help_sections": ["help", "default", "required"],
    "padding_helptext_first_line": (0, 0, 1, 0),
}
GROUPS = {
    "Run": ["demo", "train", "resume", "azr"],
    "Look": ["report", "show", "play", "sample"],
    "Compare": ["compare", "crossplay", "recipe"],
    "Measure": ["eval", "benchmark"],
    "Share": ["export", "push", "check-serving"],
    "Parts": ["evolve", "new", "referee", "doctor"],
}

POSITIVE = click.IntRange(1)
FILE = click.Path(path_type=Path)
int_option = partial(click.option, type=POSITIVE, metavar="N")
flag = partial(click.option, is_flag=True)
out_option = partial(click.option, "--out", type=FILE)
seed_option = partial(click.option, "--seed", type=int, default=1)
dtype_option = partial(click.option, "--dtype", type=click.Choice(get_args(Dtype)))
json_option = flag("--json", "as_json", help="as JSON")
base_option = click.option(
    "--base", type=FILE, metavar="DIR", help="base, if not the one that a folder names"
)
run_argument = click.argument("path", metavar="RUN", type=click.Path(), help="the run's folder")
COMPLETE = "_AZR_POPULATION_COMPLETE"
"""The variable by which a shell asks for completions, as click names it."""


def _complete_override(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Keys, and choices of groups, that begin with what was typed."""
    choices = [f"{group}={name}" for group, names in groups().items() for name in names]
    keys = [f"{key}=" for key in list(Config.keys()) if key not in Config.sections()]
    return [CompletionItem(text) for text in [*choices, *keys] if text.startswith(typed)]


overrides_argument = click.argument(
    "overrides",
    nargs=-1,
    metavar="[KEY=VALUE]...",
    help="e.g. run.steps=40",
    shell_complete=_complete_override,
)


HELP_OPTIONS = ["-h", "--help"]


class Commands(click.RichGroup):
    """A group that suggests a command for a mistyped one, as click does from 8.2.2 on."""

    def add_command(self, cmd: click.Command, *arguments: Any, **more: Any) -> None:
        """Adds a command. click keeps the help option of a command as it was first asked for, which
        may be without this group."""
        cmd.context_settings.setdefault("help_option_names", HELP_OPTIONS)
        super().add_command(cmd, *arguments, **more)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that these words name. Raises UsageError: there is none."""
        if self.get_command(ctx, args[0]) is None:
            names = self.list_commands(ctx)
            hint = did_you_mean(args[0], names) or f"; choose from {', '.join(names)}"
            ctx.fail(f"there is no command {args[0]}{hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands,
    context_settings={"show_default": True, "help_option_names": HELP_OPTIONS},
)
@click.rich_config(HELP)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.option("--trust", "everything", is_flag=True, help="run code that a run's folder names")
def app(everything: bool) -> None:
    """Co-evolving populations of LoRA adapters for reasoning self-play."""
    if everything:
        trust(EVERYTHING)


for group, commands in GROUPS.items():
    app.add_panel(click.RichCommandPanel(group, commands=commands))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0, 2 for a user's mistake, 130 for Ctrl-C, or 141
    if the reader of its output is gone (as in shells)."""
    for stream in (sys.stdout, sys.stderr):  # letters that a terminal lacks end no command
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        # Not `app.main`, which ends the process itself if the reader of its output is gone.
        arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
        if arguments[0] == "help":
            arguments = [*arguments[1:], "--help"]
        if instruction := os.environ.get(COMPLETE):
            return shell_complete(app, {}, NAME, COMPLETE, instruction)
        with app.make_context(NAME, arguments) as context:
            code = app.invoke(context) or 0
        if sys.stdout:  # None if it was closed before the start
            sys.stdout.flush()
        return int(code)
    except Exit as end:
        return end.exit_code
    except click.ClickException as error:
        return _mistake(_in_one_line(error, arguments))
    except UserError as error:
        return _mistake(str(error))
    except (KeyboardInterrupt, click.Abort):
        print(f"{NAME}: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError as error:
        if error.errno is None or error.strerror != os.strerror(error.errno):
            print(f"{NAME}: {error.strerror}", file=sys.stderr)
        _leave_output()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno == errno.ENOENT and not error.filename:  # tempfile's, as torch is imported
            return _mistake(f"{error.strerror}; is the disk full?")
        if error.errno not in _OF_THE_MACHINE:
            raise
        if not error.filename:
            _leave_output()
        return _mistake(f"{error.filename or 'its output'}: {error.strerror}")


def only_one(**options: Any) -> None:
    """Raises UserError if more than one of these options is given."""
    options_typed = [f"--{name}" for name, value in options.items() if value is not None]
    if len(options_typed) > 1:
        raise UserError(f"{' and '.join(options_typed)} exclude each other; give one")


def _in_one_line(error: click.ClickException, typed: Sequence[str]) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else NAME
    command = path.removeprefix(NAME).strip()
    message = error.format_message().strip().rstrip(".")
    if isinstance(error, click.NoSuchOption) and set(error.possibilities or ()) <= {"--help"}:
        message = f"No such option {error.option_name!r}"  # click 8.5 suggests --help for all
    hint = _hint(error, context.command, typed) if context else ""
    return f"{command}: {message}; {hint or f'see {path} --help'}".removeprefix(": ")


_MEMBER, _OUT = r"(teacher|student|agent)_\d+", r".+\.(html|json|csv)"


def _hint(error: click.ClickException, command: click.Command, typed: Sequence[str]) -> str:
    """The way out of an option that a command does not have, or of a word too many; else empty."""
    if isinstance(error, click.NoSuchOption):
        name = error.option_name
        if error.possibilities and set(error.possibilities) != {"--help"}:
            return ""  # click suggests them
        plays = _takes_overrides(command)
        others = [
            f"{NAME} {other.name}"
            for other in app.commands.values()
            if _has(other, name) and _takes_overrides(other) == plays
        ]
        if others or not plays:
            return f"{' and '.join(others)} {'have' if others[1:] else 'has'} it" if others else ""
        words = [*typed, "", name, ""]  # click takes -s out of -s5
        after = words[[word.partition("=")[0] for word in words].index(name) :]
        value = after[0].partition("=")[2] or after[1] or "VALUE"
        near = meant(Config, name.lstrip("-").replace("-", "_"), value)
        return f"did you mean {near}?" if near else ""
    if extra := re.search(r"extra arguments? \((\S+)", error.format_message()):
        word = extra[1].rstrip(")")
        if _has(command, "--out") and re.fullmatch(_OUT, word):
            return f"did you mean --out {word}?"
        if any(parameter.name == "address" for parameter in command.params):
            before = typed[typed.index(word) - 1] if word in typed else "RUN"
            return f"did you mean {before}/{word}?" if re.fullmatch(_MEMBER, word) else ""
    return ""


def _has(command: click.Command, option: str) -> bool:
    return any(option in parameter.opts for parameter in command.params)


def _takes_overrides(command: click.Command) -> bool:
    return any(parameter.name == "overrides" for parameter in command.params)


def _mistake(message: str) -> int:
    print(f"{NAME}: {printable(redact(message)[:LONGEST_LINE])}", file=sys.stderr)
    return 2


def _leave_output() -> None:
    """Discards the rest of the output, which the interpreter would fail to flush at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
