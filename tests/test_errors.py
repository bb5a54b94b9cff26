import pytest

from azr_population.errors import first_line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("no such key\n  at line 3"), "no such key"),
        (ValueError("\n  indented \nmore"), "indented"),
        (AssertionError(), "AssertionError"),
        (OSError(" \n"), "OSError"),
    ],
)
def test_the_first_line_of_an_error_is_told_even_if_it_says_nothing(error, line):
    assert first_line(error) == line
