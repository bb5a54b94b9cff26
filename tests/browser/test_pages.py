"""The pages in a real browser: nothing is cut, charts are drawn, can be read, chosen and saved."""

import csv
from xml.etree import ElementTree

import pytest

WIDTHS = (390, 1280)
DRAWN = ("8t8s", "single", "comparison")


def figure(page, title):
    """The figure of that title, scrolled to and drawn."""
    locator = page.locator("figure", has=page.locator(f'[aria-label="{title}"]')).first
    locator.scroll_into_view_if_needed()
    locator.locator("svg.marks").wait_for()
    return locator


def test_the_largest_page_is_small(pages):
    assert pages["8t8s"].stat().st_size < 5_000_000


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_screen(opened, name, width, scheme):
    page = opened(name, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    wide = page.evaluate(
        """() => [...document.querySelectorAll("main figure, main svg, main pre, .tile")]
            .filter((one) => one.getBoundingClientRect().right > innerWidth + 1
                && !one.closest(".scroll, .frame")).map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert wide == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, dark.strip("rgb()").split(","))) < 200) == (scheme == "dark")


@pytest.mark.parametrize("name", ["8t8s", "comparison"])
def test_figures_can_be_saved(opened, name):
    chart = figure(opened(name), "Solve rate")
    with chart.page.expect_download() as download:
        chart.get_by_role("button", name="SVG").click()
    text = " ".join(ElementTree.parse(download.value.path()).getroot().itertext())
    assert ("student" if name == "8t8s" else "4t4s") in text
    with chart.page.expect_download() as table:
        chart.get_by_role("button", name="CSV").click()
    rows = list(csv.reader(table.value.path().read_text("utf-8").splitlines()))
    assert "step" in rows[0] and len(rows) > 15
    assert {len(row) for row in rows} == {len(rows[0])}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["8t8s", "comparison"])
def test_pointing_at_a_chart_shows_its_values(opened, name, width):
    chart = figure(opened(name, width), "Solve rate")
    chart.locator("svg.marks").hover()
    tip = chart.page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    assert "step" in tip.inner_text() and "%" in tip.inner_text()
    box = tip.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width


def test_a_picked_member_stands_out(opened):
    page = opened("8t8s")
    chart = figure(page, "Solve rate")
    strong = chart.locator("path[stroke-width='2.25']")
    before = strong.count()
    page.get_by_role("button", name="student_3", exact=True).click()
    strong.nth(before).wait_for(state="attached")


def test_a_page_without_a_step_opens(opened):
    page = opened("begun", 390)
    assert "Incomplete: 0 of" in page.inner_text("header")
    assert "No member was replaced" in page.inner_text("#family-tree")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_answer_and_its_intervals_are_in_the_first_screen(opened, width):
    page = opened("comparison", width)
    answer = page.locator("p.answer").first.bounding_box()
    chart = page.locator("#answer figure").first.bounding_box()
    assert answer["y"] + answer["height"] < page.viewport_size["height"] / 2
    assert chart["y"] < page.viewport_size["height"]


def test_every_figure_has_words_for_who_cannot_see_it(opened):
    for name in DRAWN:
        assert opened(name).locator(".vega:not([aria-label]), .vega[aria-label='']").count() == 0
