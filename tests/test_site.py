"""The built website in a real browser: both languages, both widths, served and unpacked from its archive."""

import os
import re

import pytest

from book import LANGS, ROOT
from book.lesson import lesson_paths

PAGES = [path.stem for path in lesson_paths()]

# The text of an article without code and formulas: no mark-up may be left in it.
PROSE = """() => {
  const copy = document.querySelector("article").cloneNode(true);
  copy.querySelectorAll("pre, code, .katex, script").forEach((node) => node.remove());
  return copy.textContent;
}"""


@pytest.fixture(params=["served", "file"])
def base(request, served, unpacked):
    """The address of the site on a server, and of the files that its archive unpacks to."""
    return served if request.param == "served" else unpacked.as_uri()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("lang", LANGS)
def test_a_page_is_complete_and_fits_a_phone(open_page, base, lang, name):
    page = open_page(f"{base}/{lang}/{name}.html", width=390)
    assert page.locator("html").get_attribute("lang") == {"zh": "zh-CN", "en": "en"}[lang]
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator(".katex-error, .problematic").count() == 0
    source = (ROOT / "chapters" / f"{name}.md").read_text("utf8")
    assert (page.locator("article .katex").count() > 0) == ("$" in source)
    prose = page.evaluate(PROSE)
    assert [mark for mark in ("$$", "**", "{cite}", "{{", "«", "\\frac") if mark in prose] == []


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", PAGES)
def test_formulas_use_their_fonts(open_page, served, lang, name):
    page = open_page(f"{served}/{lang}/{name}.html")
    if page.locator("article .katex").count():
        assert page.evaluate("document.fonts.ready.then(() => document.fonts.check('16px KaTeX_Math'))")


@pytest.mark.parametrize("name", PAGES)
def test_the_switch_leads_to_the_same_page_and_is_remembered(open_page, base, name):
    page = open_page(f"{base}/zh/{name}.html", width=390, locale="zh-CN")
    page.locator("a.lang-switch").click()
    page.wait_for_url(f"**/en/{name}.html")
    assert page.locator("html").get_attribute("lang") == "en"
    page.wait_for_function("localStorage.getItem('course-lang') === 'en'")


@pytest.mark.parametrize(("locale", "lang"), [("zh-CN", "zh"), ("de-DE", "en")])
def test_the_root_page_goes_to_the_readers_language(open_page, served, locale, lang):
    page = open_page(f"{served}/index.html", locale=locale)
    page.wait_for_url(f"**/{lang}/index.html")


def test_the_root_page_offers_both_languages_without_scripts(open_page, served):
    page = open_page(f"{served}/index.html", java_script_enabled=False)
    assert [link.get_attribute("href") for link in page.locator("a").all()] == [
        "zh/index.html",
        "en/index.html",
    ]


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", PAGES)
def test_every_slider_of_a_figure_works_by_keyboard(open_page, base, lang, name):
    page = open_page(f"{base}/{lang}/{name}.html")
    for slider in page.locator(".course-figure input[type=range]").all():
        figure = slider.locator("xpath=ancestor::*[contains(@class, 'course-figure')][1]")
        before = figure.inner_html()
        slider.focus()
        page.keyboard.press("ArrowRight" if slider.evaluate("(s) => +s.value < +s.max") else "ArrowLeft")
        assert figure.inner_html() != before


def test_the_switch_keeps_the_section_and_the_query(open_page, served):
    page = open_page(f"{served}/en/04_rope.html")
    anchor = page.locator("article h2[id]").nth(4).get_attribute("id")
    number = page.locator("article h2[id]").nth(4).inner_text().split()[0]
    page.goto(f"{served}/en/04_rope.html#{anchor}")
    page.locator("a.lang-switch").click()
    page.wait_for_url(f"**/zh/04_rope.html#{anchor}")
    assert page.locator(f"#{anchor}").inner_text().split()[0] == number
    page.goto(f"{served}/en/search.html?q=YaRN")
    page.locator("a.lang-switch").click()
    page.wait_for_url("**/zh/search.html?q=YaRN")


@pytest.mark.parametrize("name", PAGES)
def test_the_sections_of_both_editions_have_the_same_anchors(site, name):
    anchors = [
        re.findall(r'<h[1-4] id="([^"]+)"', (site / lang / f"{name}.html").read_text("utf8"))
        for lang in LANGS
    ]
    assert anchors[0] == anchors[1]
    assert len(set(anchors[0])) == len(anchors[0]) > 0


@pytest.mark.parametrize("lang", LANGS)
def test_no_page_asks_for_the_icon_font(site, lang):
    pages = "".join(path.read_text("utf8") for path in (site / lang).glob("*.html"))
    sheets = "".join(path.read_text("utf8") for path in (site / lang).rglob("*.css"))
    assert not re.search(r'class="(?:[^"]* )?fa[srb]?[ -]', pages)
    assert not re.search(r"@font-face\s*\{[^}]*Awesome", sheets)
    assert not list((site / lang).rglob("fa-*")) and not list((site / lang).rglob("fontawesome*"))


def test_a_site_that_knows_no_repository_has_no_launch_button(site):
    if repository := os.environ.get("COURSE_REPOSITORY"):
        pytest.skip(f"this site was built for {repository}")
    assert [page for page in site.rglob("*.html") if "dropdown-item launch" in page.read_text("utf8")] == []


def test_the_page_for_a_wrong_address_leads_back(open_page, site):
    text = (site / "404.html").read_text("utf8")
    assert "{{" not in text
    for link in re.findall(r'href="/([^"]+)"', text):
        assert (site / link).exists(), link


def test_chinese_pages_have_no_english_labels(open_page, served):
    page = open_page(f"{served}/zh/04_rope.html")
    labels = page.evaluate(
        """[...document.querySelectorAll("[title], [aria-label], button")]
             .filter((e) => !e.closest("article, .katex") && !e.matches(".lang-switch"))
             .flatMap((e) => [e.title, e.getAttribute("aria-label"), e.dataset.bsTitle])
             .filter((text) => text && /[A-Za-z]{3}/.test(text) && !/[\\u3400-\\u9fff]/.test(text))"""
    )
    assert labels == []
