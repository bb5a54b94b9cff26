import html
import re

import pytest

from azr_population.analysis.html import highlighted


def test_words_are_marked_and_the_text_stays_the_same():
    source = "def f(x):  # it's\n    return len(x) + 0x1F if 'a\\'b' else None"
    page = highlighted(source)
    assert '<span class="k">def</span> f(x)' in page
    assert '<span class="n">0x1F</span>' in page
    assert html.unescape(re.sub(r"<span[^>]*>|</span>", "", page)) == source


@pytest.mark.parametrize(
    "source",
    [
        "</pre><script>",
        "'<b>' \"&\"",
        "# </span>",
        "'''\n<i>",
        "\\",
        "'unclosed <x",
        'f"{x!r}<" + r"\\"',
    ],
)
def test_whatever_it_holds_it_is_text(source):
    page = highlighted(source)
    assert html.unescape(re.sub(r'<span class="[ksnc]">|</span>', "", page)) == source
    assert not re.search(r"<(?!/?span)", page)
