"""The website for those who cannot see it, cannot hold a mouse, want no motion, or read on paper."""

import os
import re

import pytest

from book import LANGS, ROOT, npm
from book.lesson import lesson_paths

PAGES = [
    *(f"{lang}/{name}" for lang in LANGS for name in [*(p.stem for p in lesson_paths()), "search"]),
    "404",
]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
STATES = [(width, mode) for width in (1280, 390) for mode in ("light", "dark")]


@pytest.fixture(scope="session")
def axe():
    return (npm.unpacked("axe-core", "4.14.1") / "axe.min.js").read_text("utf8")


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_in_either_mode_at_either_width(open_page, served, axe, name):
    page = open_page(f"{served}/{name}.html", reduced_motion="reduce")
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    page.evaluate(axe)
    found = []
    for width, mode in STATES:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=mode)
        if name != "404":
            page.wait_for_function("(mode) => document.documentElement.dataset.theme === mode", arg=mode)
        page.wait_for_timeout(350)  # the theme decides this long after a change of width what can be scrolled
        found += [(width, mode, *violation) for violation in violations(page)]
        keep_screenshot(page, name, width, mode)
    assert found == []


def violations(page):
    """Run axe and return [rule, mark-up] of each fault; what it lists beside them, thousands of nodes, takes most of its time."""
    run = """async (tags) => {
      const only = {runOnly: {type: "tag", values: tags}, resultTypes: ["violations"], selectors: false};
      const {violations} = await axe.run(only);
      return violations.flatMap(({id, nodes}) => nodes.map(({html}) => [id, html]));
    }"""
    return page.evaluate(run, RULES)


def keep_screenshot(page, name, width, mode):
    """Where tests run for a change, keep a picture of the page for those who review it."""
    if os.environ.get("CI"):
        path = ROOT / "_build" / "screenshots" / f"{name.replace('/', '_')}-{width}-{mode}.jpg"
        page.screenshot(path=path, full_page=True, type="jpeg", quality=60)


@pytest.mark.parametrize("lang", LANGS)
def test_the_side_bar_on_a_phone_has_a_name_and_no_fault(open_page, served, axe, lang):
    page = open_page(f"{served}/{lang}/04_rope.html", width=390)
    page.locator(".primary-toggle").click()
    page.wait_for_selector("#pst-primary-sidebar-modal[open]")
    page.wait_for_timeout(500)  # until it has slid in
    page.evaluate(axe)
    assert violations(page) == []


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("path", lesson_paths(), ids=lambda path: path.stem)
def test_every_picture_has_a_text_and_keeps_its_place(site, path, lang):
    page = (site / lang / f"{path.stem}.html").read_text("utf8")
    for image in re.findall(r"<img [^>]*>", page):
        alt = re.search(r'alt="([^"]*)"', image)[1]
        assert len(alt) > 8 and not re.fullmatch(r".*\.png", alt), image
        assert bool(re.search(r"[\u3400-\u9fff]", alt)) == (lang == "zh"), image
        assert re.search(r'width="\d+" height="\d+"', image), image


def test_the_print_has_every_answer_open_and_cuts_no_cell(open_page, served):
    page = open_page(f"{served}/en/04_rope.html")
    answers = page.locator("article details:not([open])")
    assert answers.count() > 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert answers.count() == 0
    page.emulate_media(media="print")
    cut = "(cells) => cells.filter((c) => getComputedStyle(c).breakInside !== 'avoid').length"
    assert page.locator("article .cell, article pre, article img").evaluate_all(cut) == 0
    wide = "(pres) => pres.filter((p) => p.scrollWidth > p.clientWidth + 1).length"
    assert page.locator("article .cell_input pre").evaluate_all(wide) == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert answers.count() > 0


def test_whoever_wants_no_motion_gets_none(open_page, served):
    page = open_page(f"{served}/en/04_rope.html", reduced_motion="reduce")
    moving = """[...document.querySelectorAll("*")].filter((e) => {
      const style = getComputedStyle(e);
      return parseFloat(style.transitionDuration) > 0 || (style.animationName !== "none");
    }).length"""
    assert page.evaluate(moving) == 0
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def test_the_keyboard_shows_where_it_is(open_page, served):
    page = open_page(f"{served}/en/04_rope.html")
    for selector in ("a.lang-switch", ".page-menu button", "article details > summary", "input[type=range]"):
        page.locator(selector).first.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", selector


def test_a_slider_is_as_high_as_a_finger(open_page, served):
    page = open_page(f"{served}/zh/04_rope.html", width=390)
    heights = page.locator("input[type=range]").evaluate_all("(all) => all.map((e) => e.offsetHeight)")
    assert heights and min(heights) >= 44


def test_a_passage_in_the_other_language_says_so(open_page, served):
    page = open_page(f"{served}/en/a_conventions.html")
    foreign = page.locator("article [lang=zh-CN]")
    assert foreign.count() > 10
    unmarked = """[...document.querySelectorAll("article *")].filter((e) => !e.closest("[lang=zh-CN], pre, script, style")
      && [...e.childNodes].some((n) => n.nodeType === 3 && /[\\u3400-\\u9fff]/.test(n.data))).map((e) => e.outerHTML)"""
    assert page.evaluate(unmarked) == []


@pytest.mark.parametrize(("lang", "words"), [("zh", "约 90 分钟"), ("en", "About 90 minutes")])
def test_a_lesson_says_how_long_it_takes(open_page, served, lang, words):
    page = open_page(f"{served}/{lang}/04_rope.html")
    assert words in page.locator(".reading-time").inner_text()


@pytest.mark.parametrize(
    ("mode", "shade"), [("light", "rgba(0, 0, 0, 0.25)"), ("dark", "rgba(255, 255, 255, 0.3)")]
)
def test_what_is_wider_than_a_phone_shows_that_it_scrolls(open_page, served, mode, shade):
    page = open_page(f"{served}/zh/04_rope.html", width=390, color_scheme=mode)
    plain = """(boxes, shade) => boxes.filter((b) => b.scrollWidth > b.clientWidth + 1
      && !getComputedStyle(b).backgroundImage.includes(shade)).map((b) => b.outerHTML.slice(0, 90))"""
    boxes = "div.math, .pst-scrollable-table-container, article .cell_input pre, .run-edit"
    assert page.locator(boxes).evaluate_all(plain, shade) == []


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_no_row_hides_the_shadow_at_the_edge_of_a_wide_table(open_page, served, mode):
    page = open_page(f"{served}/zh/a_conventions.html", width=390, color_scheme=mode)
    opaque = """(rows) => rows.filter((row) => /^rgb\\(|, 1\\)$/.test(getComputedStyle(row).backgroundColor)).length"""
    rows = page.locator(".pst-scrollable-table-container :is(tr, th, td)")
    assert rows.count() > 20
    assert rows.evaluate_all(opaque) == 0
