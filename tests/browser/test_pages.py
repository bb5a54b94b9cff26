from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from azr_population.analysis.html import figure

Opened = Callable[..., Any]
WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")
DRAWN = ("8t8s", "single", "comparison")


def test_the_largest_page_is_small(pages: dict[str, Path]) -> None:
    assert pages["8t8s"].stat().st_size < 5_000_000


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_screen(
    opened: Opened, name: str, width: int, scheme: str
) -> None:
    page = opened(name, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    wide = page.evaluate(
        """() => [...document.querySelectorAll("main figure, main svg, main pre, .tile")]
            .filter((one) => one.getBoundingClientRect().right > innerWidth + 1
                && !one.closest(".scroll")).map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert wide == []


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_stands_out_from_what_it_stands_on(opened: Opened, name: str, scheme: str) -> None:
    page = opened(name, 1280, scheme)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    lightness = sum(int(part) for part in dark.strip("rgb()").split(","))
    assert (lightness < 200) == (scheme == "dark")
    # WCAG 2.1's contrast ratio of every variable used for text on every surface: 4.5 at least;
    # 3 for the colours of lines.
    ratios = page.evaluate(
        """() => {
            const style = getComputedStyle(document.documentElement);
            const light = (name) => {
              const hex = style.getPropertyValue(name).trim();
              const parts = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255)
                .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
              return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
            };
            const found = {};
            const lines = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((i) => ["--line-" + i, "--op-" + i]);
            lines.push("--type-0", "--type-1", "--type-2");
            const words = ["--ink", "--soft", "--key", "--string", "--numeral", "--good", "--bad"];
            for (const name of [...words, ...lines, "--teacher", "--student", "--agent"])
              for (const surface of ["--page", "--card", "--sunk"]) {
                const [a, b] = [light(name), light(surface)].sort((x, y) => y - x);
                found[name + " on " + surface] = (a + 0.05) / (b + 0.05);
              }
            return found;
        }"""
    )
    for pair, ratio in ratios.items():
        is_line = pair.startswith(("--line", "--op", "--code"))
        assert ratio >= (3.0 if is_line else 4.5), pair


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("width", [390, 760, 1280])
def test_no_card_stands_alone_beside_an_empty_place(opened: Opened, name: str, width: int) -> None:
    ragged = """() => [...document.querySelectorAll(".charts, .tasks, .tiles")].filter((grid) => {
        const cards = [...grid.children].map((one) => one.getBoundingClientRect());
        const rows = new Map();
        for (const card of cards) rows.set(card.top, [...(rows.get(card.top) || []), card]);
        const counts = [...rows.values()].map((row) => row.length);
        const right = grid.getBoundingClientRect().right;
        return Math.max(...counts) - Math.min(...counts) > 1
            || [...rows.values()].some((row) => Math.abs(row[row.length - 1].right - right) > 3);
    }).map((grid) => grid.parentElement.id || grid.id)"""
    assert opened(name, width).evaluate(ragged) == []


def test_a_line_breaks_where_the_individual_changes(opened: Opened) -> None:
    page = opened("8t8s")
    drawn = """(title) => [...document.querySelectorAll("figure")]
        .find((one) => one.querySelector("b").textContent === title)
        .querySelector("path[data-name=student_0]").getAttribute("d").match(/M/g).length"""
    births = page.evaluate("data.lineage.filter((one) => one.child === 'student_0').length")
    assert births >= 2
    assert page.evaluate(drawn, "Rating mu") == births + 1
    assert page.evaluate("document.querySelector('path.main').getAttribute('d').match(/M/g)") == [
        "M"
    ]


def test_colours_of_roles_and_types_are_used_for_nothing_else(opened: Opened) -> None:
    page = opened("8t8s")
    used = page.evaluate(
        """() => {
            const style = getComputedStyle(document.documentElement);
            const hues = {};
            for (const name of [...COLOURS.filter((one) => !one.startsWith("line")),
                "accent", "good", "bad", "key", "string", "numeral"]) {
              const hex = style.getPropertyValue("--" + name).trim();
              hues[hex] = [...(hues[hex] || []), name];
            }
            return Object.values(hues).filter((names) => names.length > 1);
        }"""
    )
    # Ink is the colour of text, keywords among it; numbers in programs borrow that of links.
    assert sorted(map(sorted, used)) == [["accent", "numeral"], ["ink", "key"], ["op-0", "string"]]


@pytest.mark.parametrize("name", ["8t8s", "comparison"])
def test_figures_can_be_saved(opened: Opened, name: str) -> None:
    page = opened(name)
    figure = page.locator("figure", has_text="Solve rate", has=page.locator(".frame svg")).first
    with page.expect_download() as drawn:
        figure.get_by_role("button", name="as SVG").click()
    root = ElementTree.parse(drawn.value.path()).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    text = " ".join(root.itertext())
    assert "Solve rate" in text and ("student" if name == "8t8s" else "4t4s") in text
    paths = root.findall(".//{http://www.w3.org/2000/svg}path")
    assert paths and all("var(" not in str(one.attrib) for one in root.iter())
    assert all(path.get("stroke", "").startswith(("rgb", "none")) for path in paths)
    with page.expect_download() as table:
        figure.get_by_role("button", name="as CSV").click()
    rows = list(csv.reader(table.value.path().read_text("utf-8").splitlines()))
    assert rows[0][0] == "step" and len(rows) > 15
    assert {len(row) for row in rows} == {len(rows[0])}
    assert table.value.suggested_filename.endswith("-solve-rate.csv")


def test_names_in_a_csv_are_no_formulas(opened: Opened) -> None:
    page = opened("begun")
    rows = [["=1+1", "a,b", 'say "x"', -2.5, None]]
    assert page.evaluate("(rows) => csvText(rows)", rows) == ('\'=1+1,"a,b","say ""x""",-2.5,\r\n')


def test_the_legend_of_the_match_ups_has_numbers(opened: Opened) -> None:
    words = opened("8t8s").inner_text("#match-ups .heat-scale").split()
    assert words == ["10%", "30%", "50%", "70%", "90%"]


def test_a_page_without_a_step_opens(opened: Opened) -> None:
    page = opened("begun", 390)
    assert "Incomplete: 0 of" in page.inner_text("header")
    assert "has not finished a step yet" in page.inner_text("#words")
    assert "Nobody was replaced" in page.inner_text("#family-tree")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["8t8s", "comparison"])
def test_pointing_at_a_chart_shows_its_values(opened: Opened, name: str, width: int) -> None:
    page = opened(name, width)
    chart = page.locator(
        "figure", has_text="Solve rate", has=page.locator(".frame svg")
    ).first.locator(".frame svg")
    chart.scroll_into_view_if_needed()
    chart.hover()
    shown = page.inner_text("#tip")
    assert shown.startswith("step ")
    assert "%" in shown
    assert page.evaluate(
        """() => { const b = document.getElementById("tip").getBoundingClientRect();
            return b.left >= 0 && b.right <= innerWidth; }"""
    )


def test_the_arrow_keys_read_a_chart(opened: Opened) -> None:
    page = opened("8t8s")
    chart = page.locator(
        "figure", has_text="Solve rate", has=page.locator(".frame svg")
    ).first.locator(".frame svg")
    chart.focus()
    page.keyboard.press("End")
    assert page.inner_text("#tip").startswith("step 200")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#tip").startswith("step 199")
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_a_picked_member_stands_out_in_the_charts(opened: Opened) -> None:
    page = opened("8t8s")
    page.get_by_role("button", name="student_3", exact=True).click()
    assert page.locator("path.chosen").count() >= 5
    page.get_by_role("button", name="student_3", exact=True).click()
    assert page.locator("path.chosen").count() == 0


def test_smoothing_can_be_switched_off(opened: Opened) -> None:
    page = opened("8t8s")
    chart = page.locator("figure", has_text="Solve rate", has=page.locator(".frame svg")).first
    before = chart.locator("path.line").count()
    page.get_by_label("running mean").uncheck()
    assert chart.locator("path.line").count() < before


def test_pointing_reads_the_running_mean_that_is_drawn(opened: Opened) -> None:
    page = opened("8t8s")

    def last_row(title: str) -> str:
        chart = page.locator("figure", has_text=title).first.locator(".frame svg")
        chart.focus()
        page.keyboard.press("End")
        return str(page.inner_text("#tip"))

    assert "running mean (this step alone)" in last_row("Solve rate")
    # What only grows is drawn and read as it is.
    assert "running mean" not in last_row("Kinds of problems covered")
    page.get_by_label("running mean").uncheck()
    assert "running mean" not in last_row("Solve rate")


def test_sentences_and_drawings_write_a_number_alike(opened: Opened) -> None:
    page = opened("begun")
    values = [i / 400 for i in range(401)] + [7.125, 27.25, 99.95, 373.5, 9999.5, 12345.5, -0.125]
    for kind in ("percent", "number"):
        shown = page.evaluate(
            "([values, kind]) => values.map((v) => format(v, kind))", [values, kind]
        )
        assert shown == [figure(value, kind) for value in values]


def test_the_family_tree_shows_kin(opened: Opened) -> None:
    page = opened("8t8s")
    tree = page.locator("#family svg").first
    assert page.locator("#family svg").count() == 2
    assert tree.locator(".person").count() == 88
    tree.focus()
    for _ in range(40):
        page.keyboard.press("ArrowDown")
    kin = tree.locator(".person.kin").count()
    assert 0 < kin < 88
    assert "generation" in page.inner_text("#tip")
    page.get_by_role("button", name="by founder").click()
    assert page.locator("#family svg").first.locator(".person").count() == 88


def test_the_map_goes_back_in_time(opened: Opened) -> None:
    page = opened("8t8s")
    slider = page.get_by_label("Kinds met up to step")
    page.locator("#coverage circle.cell").first.wait_for()  # drawn when its width is known
    now = page.locator("#coverage circle.cell").count()
    slider.focus()
    page.keyboard.press("Home")
    assert 0 < page.locator("#coverage circle.cell").count() < now
    assert "up to step 1" in page.inner_text("#coverage")


def test_the_map_needs_no_metrics(opened: Opened) -> None:
    text = opened("no metrics").inner_text("#coverage")
    assert "up to step 30" in text
    assert text.count("step 1\n") == 1 and "step 16\n" in text


def test_tables_fit_a_desktop_and_a_phone_shows_some_columns(opened: Opened) -> None:
    wide = """() => [...document.querySelectorAll('main .scroll')]
        .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.ariaLabel)"""
    assert opened("8t8s", 1280).evaluate(wide) == []
    page = opened("8t8s", 390)
    assert (
        page.evaluate(
            """() => [...document.querySelectorAll("#fairness .scroll:first-of-type thead th")]
            .filter((one) => one.getBoundingClientRect().right < innerWidth).length"""
        )
        >= 4
    )


def test_the_match_ups_say_that_places_change_hands(opened: Opened) -> None:
    assert "80 students" in opened("8t8s").inner_text("#match-ups")
    assert "place" not in opened("single").inner_text("#match-ups")


def test_every_figure_has_words_for_who_cannot_see_it(opened: Opened) -> None:
    for name in DRAWN:
        unnamed = "svg:not([aria-hidden]):not([aria-label]), svg[aria-label='']:not([aria-hidden])"
        assert opened(name).locator(unnamed).count() == 0


def test_the_comparison_marks_its_intervals(opened: Opened) -> None:
    page = opened("comparison", 390)
    assert page.locator(".interval svg").count() >= 5
    assert page.locator("path.band").count() >= 5


@pytest.mark.parametrize("width", WIDTHS)
def test_the_verdict_stands_in_the_first_screen(opened: Opened, width: int) -> None:
    page = opened("comparison", width)
    box = page.locator(".forest tr").last.bounding_box()
    assert box["y"] + box["height"] < page.viewport_size["height"]
    links = page.locator("#contents a")
    assert links.count() == page.locator("main section").count() == 9
    assert page.locator("main section:not([id])").count() == 0


def test_settings_that_differ_do_not_run_into_each_other(opened: Opened) -> None:
    page = opened("comparison", 390)
    cut = page.evaluate(
        """() => [...document.querySelectorAll("#differences :is(th, td)")]
            .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)"""
    )
    assert cut == []
    assert page.evaluate(
        """() => getComputedStyle(document.querySelector("#who svg line")).stroke !== "none" """
    )
