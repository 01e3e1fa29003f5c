"""The report in a real browser: headless Chromium, driven by Playwright, from disk."""

import shutil

import numpy as np
import pytest

from skyfall_metrics.report.contents import report_of
from skyfall_metrics.report.lives import life_of
from skyfall_metrics.report.page import render_page
from skyfall_metrics.scoring import score
from skyfall_metrics.trace import trace_from_arrays

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
QUIET += ["--disable-component-update", "--disable-sync"]
HOSTILE = "<script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
LONG = "a_configuration_with_a_name_that_is_longer_than_a_phone_is_wide_and_has_no_place_to_break"


def life(seed, algorithm, slope, *, labels, **columns):
    rng = np.random.default_rng([seed, len(algorithm)])
    rows = 400 * len(labels)
    reward = slope * np.tile(np.linspace(0, 1, 400), len(labels)) + 0.1 * rng.standard_normal(rows)
    named = [label for label in labels for _ in range(400)]
    known = {"algorithm_id": algorithm, "task": "t", "seed": seed, "run_id": f"{algorithm}-{seed}"}
    trace = trace_from_arrays(reward, named, metadata=known, **columns)
    return life_of(trace, score(trace))


@pytest.fixture(scope="module")
def report_path(tmp_path_factory):
    labels = [LONG, HOSTILE, LONG]
    rank = np.where(np.arange(1200) % 50 == 0, np.linspace(9, 3, 1200), np.nan)
    lives = [life(seed, "learner", 1 + seed, labels=labels, effective_rank=rank) for seed in (2, 10, 0)]
    lives += [life(0, HOSTILE, 0.5, labels=labels), life(1, HOSTILE, 0.2, labels=labels[:2])]
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_page(report_of(lives, title="Five lives")), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, report_path):
    """Opens the report with some settings; afterwards nothing may have been asked for, said or broken."""
    contexts, requests, complaints = [], [], []

    def opened(**settings):
        context = chromium.new_context(offline=True, **settings)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(report_path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert requests == [report_path.as_uri()] * len(contexts)
    assert complaints == []


def column(page, place):
    return page.locator(f"#runs tbody tr td:nth-child({place})").evaluate_all(
        "cells => cells.map(c => c.dataset.value)"
    )


def test_opens_from_disk_and_asks_for_nothing(visit):
    page = visit()
    assert page.title() == "Five lives"
    assert page.locator("figure svg.wide").count() == 5
    assert page.locator("figure svg.narrow").first.is_hidden()


def test_markup_in_labels_does_not_run(visit):
    page = visit()
    assert page.evaluate("window.hit") is None
    assert (page.locator("script").count(), page.locator("img").count()) == (1, 0)
    assert page.locator("#runs td", has_text="<script>window.hit").count() == 4


def test_even_script_that_got_in_would_not_run(chromium, report_path, tmp_path):
    forged = tmp_path / "forged.html"
    forged.write_text(report_path.read_text().replace("<footer>", "<script>window.hit = 1</script><footer>"))
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.goto(forged.as_uri())
    assert page.evaluate("window.hit") is None
    context.close()


def test_table_sorts_by_click_and_back(visit):
    page = visit()
    heading = page.get_by_role("columnheader", name="Seed")
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert column(page, 2) == ["0", "0", "1", "2", "10"]
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert column(page, 2) == ["10", "2", "1", "0", "0"]


def test_table_sorts_from_the_keyboard(visit):
    page = visit()
    heading = page.get_by_role("columnheader", name="Reward per configuration")
    heading.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    rewards = [float(value) for value in column(page, 4)]
    assert rewards == sorted(rewards)
    page.keyboard.press("Space")
    assert [float(value) for value in column(page, 4)] == rewards[::-1]


def test_only_one_heading_is_sorted_and_missing_numbers_stay_last(visit):
    page = visit()
    page.get_by_role("columnheader", name="Seed").get_by_role("button").click()
    forgetting = page.get_by_role("columnheader", name="Forgetting").get_by_role("button")
    for _ in range(2):
        forgetting.click()
        assert column(page, 6)[-1] == ""
        assert "" not in column(page, 6)[:-1]
    assert page.locator("#runs th[aria-sort=none]").count() == page.locator("#runs th").count() - 1


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
def test_nothing_runs_over_the_edge(visit, width):
    page = visit(viewport={"width": width, "height": 800})
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_phone_gets_drawings_of_its_own_with_readable_letters(visit):
    page = visit(viewport={"width": 375, "height": 800})
    drawing = page.locator("figure svg.narrow").first
    assert drawing.is_visible()
    assert page.locator("figure svg.wide").first.is_hidden()
    scale = drawing.evaluate("svg => svg.getScreenCTM().a")
    assert scale * 11 >= 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_the_page(visit, scheme):
    page = visit(color_scheme=scheme)
    contrast = """() => {
        const style = getComputedStyle(document.body);
        const muted = getComputedStyle(document.querySelector('.lead'));
        const light = (text) => {
            const [r, g, b] = text.match(/[0-9.]+/g).map((v) => v / 255)
                .map((v) => (v > 0.03928 ? ((v + 0.055) / 1.055) ** 2.4 : v / 12.92));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
        };
        const back = light(style.backgroundColor);
        const against = (text) => Math.max(light(text) / back, back / light(text));
        return [back, against(style.color), against(muted.color)];
    }"""
    back, ink, muted = page.evaluate(contrast)
    assert (back > 0.5) == (scheme == "light")
    assert ink >= 7
    assert muted >= 4.5


def test_pointing_at_a_curve_reads_it_out(visit):
    page = visit()
    tip = page.locator("#tip")
    assert tip.is_hidden()
    box = page.locator("#reward svg.wide .panel").first.bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    assert tip.is_visible()
    assert "step ≈ " in tip.inner_text()
    page.mouse.move(2, 2)
    assert tip.is_hidden()


def test_figures_are_images_with_names_to_assistive_technology(visit):
    page = visit()
    for name in (
        "Reward over steps",
        "Reward per configuration",
        "The six metrics",
        "Effective rank over steps",
    ):
        assert page.get_by_role("img", name=name).count() == 1
