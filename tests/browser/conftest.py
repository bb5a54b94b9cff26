"""A real browser for the pages; without one the tests skip and say why.

Needs playwright (`pip install playwright`) and a Chromium: the one that the variable
CHROMIUM names, one on the PATH, or playwright's own.
"""

import os
import shutil

import needs
import pytest
from made_up_run import make_run, write_run

from azr_population.analysis.comparison import compare_arms
from azr_population.analysis.comparison_page import write_comparison
from azr_population.analysis.report import write_report

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium, driven by playwright."""
    sync = needs.module("playwright.sync_api", "-e '.[browser]'")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    with sync.sync_playwright() as playwright:
        try:
            # Without its sandbox it also runs as root in a container; it opens our own files only.
            chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except sync.Error as error:
            pytest.skip(
                "needs Chromium: sudo apt-get install chromium, or playwright install chromium "
                f"({str(error).splitlines()[0]})"
            )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """The pages looked at, by name."""
    folder = tmp_path_factory.mktemp("pages")

    def report(name, **options):
        steps = options.get("steps", 12)
        return write_report(write_run(folder / name, make_run(**options), steps=steps))

    arms = []
    for arm, members in (("single", 0), ("4t4s", 4)):
        arms.append(str(folder / "arms" / arm))
        for seed in (1, 2, 3):
            run = make_run(steps=20, teachers=members, students=members, seed=seed)
            reward = "learnability" if arm == "single" else "adversarial"
            config = (
                f"seed: {seed}\npopulation: {{teacher_reward: {reward}, teachers: {members}}}\n"
                "eval: {seed: 1, tasks_per_type: 24, samples: 1}\n"
                "task: {types: [code_o], domain: code}\n"
                "base: {prompt_format: nano}\nengine: {max_answer_tokens: 0}\n"
            )
            write_run(folder / "arms" / arm / f"seed_{seed}", run, config=config)
    blind = write_run(folder / "no metrics", {**make_run(steps=30), "metrics": []}, steps=30)
    return {
        "no metrics": write_report(blind),
        "8t8s": report("8t8s", steps=200, teachers=8, students=8, tasks=24, evolving=True),
        "single": report("single", steps=30, teachers=0, students=0),
        "begun": write_report(write_run(folder / "begun", {})),
        "comparison": write_comparison(compare_arms(arms), folder / "comparison.html"),
    }


@pytest.fixture
def opened(browser, pages):
    """Opens a page by name at a width and colour scheme; its `complaints` are checked at the end.

    Complaints are errors and warnings in the console, uncaught exceptions, and requests for
    anything but the file itself.
    """
    contexts = []
    complaints = []

    def open_page(name, width=1280, scheme="light"):
        height = 844 if width < 600 else 900
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=width < 600
        )
        contexts.append(context)
        page = context.new_page()
        address = pages[name].as_uri()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url == address else complaints.append(request.url),
        )
        page.goto(address)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")  # draws what is out of sight too
        page.wait_for_selector(".vega:not(:has(svg))", state="detached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
