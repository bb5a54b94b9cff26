"""What every command's options have in common."""

import argparse

import pytest

from azr_population.cli import _parser, main


def commands(parser=None):
    """All commands' parsers, those of their actions too."""
    parser = parser or _parser()
    found = [parser]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for own in action.choices.values():
                found += commands(own)
    return found


@pytest.mark.parametrize("parser", commands(), ids=lambda parser: parser.prog)
def test_help_tells_what_every_argument_is_and_its_default(parser):
    told = " ".join(parser.format_help().split())
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        assert action.help, f"{parser.prog} {action.option_strings or action.dest}"
        if action.option_strings and isinstance(action.default, (int, float)) and action.default:
            assert f"default {action.default}" in told, action.option_strings


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["trian"], "COMMAND trian is unknown; did you mean train?"),
        (["benchmark", "x", "--members", "studens"], "did you mean students?"),
        (["completion", "fish"], "shell fish is unknown; choose from bash, zsh, tcsh"),
        (["resume"], "the following arguments are required: RUN;"),
    ],
)
def test_a_word_that_nobody_knows_gets_a_suggestion(typed, said, capsys):
    assert main(typed) == 2
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1


def test_a_shell_completes_commands_and_options(capsys):
    pytest.importorskip("shtab", reason="shtab is not installed")
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert "crossplay" in script and "--dry-run" in script
