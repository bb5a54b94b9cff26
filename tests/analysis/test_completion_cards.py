"""The folded completions of a run's page."""

import html
import re

import pytest
from completion_lines import line

from azr_population.analysis.html import highlighted
from azr_population.analysis.task_cards import LONGEST, completions
from azr_population.domains.code.formats import MARKS


def page(*rows):
    steps = completions(lambda: iter(rows), MARKS)
    return "".join(
        f"Step {step}: {len(shown)} completions{''.join(shown)}" for step, shown in steps.items()
    )


def test_some_of_each_verdict_and_reason_proposals_first():
    rows = [line(1)] * 9 + [line(1, "solved", "solved")] * 9 + [line(1, reason="timeout")]
    text = page(*rows)
    heads = re.findall(r"<summary><span class=\"(\w+)\">([^<]*)</span> (\w+) (\w+)", text)
    assert heads == [
        *[("no", "refused, boolean", "teacher_0", "proposes")] * 2,
        ("no", "refused, timeout", "teacher_0", "proposes"),
        *[("yes", "solved", "student_0", "solves")] * 2,
    ]
    assert "Step 1: 5 completions" in text and text.count("<details") == 5
    assert '<span class="k">return</span> a &gt; <span class="n">1</span>\n&lt;in&gt; ' in text


def test_five_steps_are_shown_and_all_is_bounded():
    long = "x = '\u20ac<' " * 2000
    rows = [
        line(step, reason=f"reason {i}", prompt=long, completion=long)
        for step in range(1, 101)
        for i in range(40)
    ]
    text = page(*rows)
    assert re.findall(r"Step (\d+): (\d+) completions", text) == [
        (str(step), "16") for step in (1, 25, 50, 75, 100)
    ]
    assert f"({len(long) - LONGEST:,} characters before) ..." in text
    assert len(text) < 1_000_000


def test_nothing_a_stranger_wrote_is_html():
    nasty = "</pre></details><script>alert(1)</script><img src=x onerror=1>\x1b[2J\u202e\x00"
    keys = ("member", "type", "verdict", "reason", "prompt", "completion")
    text = page(line(1, **dict.fromkeys(keys, nasty)), line(1, completion=f"```python\n{nasty}"))
    assert "<script" not in text and "<img" not in text and "\x1b" not in text
    assert "\x00" not in text and "\u202e" not in text and "\\x1b[2J\\u202e\\x00" in text
    assert html.unescape(text).count("onerror") == 6


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):  # it's\n    return len(x) + 0x1F if 'a\\'b' else None",
        "</pre><script>",
        "'<b>' \"&\"",
        "# </span>",
        "'''\n<i>",
        "\\",
        "'unclosed <x",
        'f"{x!r}<" + r"\\"',
    ],
)
def test_words_are_marked_and_whatever_a_program_holds_is_text(source):
    page = highlighted(source)
    assert ('<span class="k">def</span> f(x)' in page) == source.startswith("def")
    assert ('<span class="n">0x1F</span>' in page) == ("0x1F" in source)
    assert html.unescape(re.sub(r'<span class="[ksnc]">|</span>', "", page)) == source
    assert not re.search(r"<(?!/?span)", page)
