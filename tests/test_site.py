"""The built website in a real browser: both languages, both widths, served and from files, with no other host."""

import functools
import http.server
import os
import shutil
import threading
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from playwright.sync_api import sync_playwright

from book import LANGS, ROOT
from book.lesson import lesson_paths

SITE = ROOT / "_build" / "site"
PAGES = [path.stem for path in lesson_paths()]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"
QUERIES = [
    (lang, *pair)
    for lang, pairs in yaml.safe_load((ROOT / "tests" / "search_queries.yml").read_text("utf8")).items()
    for pair in pairs.items()
]


# The text of an article without code and formulas: no mark-up may be left in it.
PROSE = """() => {
  const copy = document.querySelector("article").cloneNode(true);
  copy.querySelectorAll("pre, code, .katex, script").forEach((node) => node.remove());
  return copy.textContent;
}"""


@pytest.fixture(scope="module", autouse=True)
def built():
    if not (SITE / "pagefind" / "pagefind.js").exists():
        pytest.fail("the website is not built: run 'make book' first, or 'make test', which does")


@pytest.fixture(scope="module")
def browser():
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        message = "no Chromium found; on Debian or Ubuntu: apt-get install chromium"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=QUIET.split())
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def served():
    """Serve the site on this machine and return its address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def open_page(browser):
    """Return a function that opens an address; the test fails on a request that fails or goes to another host."""
    faults, contexts = [], []

    def open_page(address, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.set_default_timeout(10_000)
        page = context.new_page()
        home = urlsplit(address).netloc
        page.on(
            "request",
            lambda r: (
                faults.append(f"other host: {r.url}") if urlsplit(r.url).netloc not in (home, "") else None
            ),
        )
        # What is still on its way when a test leaves the page is aborted by the browser itself.
        page.on(
            "requestfailed",
            lambda r: None if r.failure == "net::ERR_ABORTED" else faults.append(f"failed: {r.url}"),
        )
        page.on("response", lambda r: faults.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
        page.on("pageerror", lambda error: faults.append(f"script error: {error}"))
        page.goto(address, wait_until="networkidle")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def address(origin, served, lang, name):
    base = served if origin == "served" else SITE.as_uri()
    return f"{base}/{lang}/{name}.html"


@pytest.mark.parametrize("origin", ["served", "file"])
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("lang", LANGS)
def test_a_page_is_complete_and_fits_a_phone(open_page, served, origin, lang, name):
    page = open_page(address(origin, served, lang, name), width=390)
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
    page = open_page(address("served", served, lang, name))
    if page.locator("article .katex").count():
        assert page.evaluate("document.fonts.ready.then(() => document.fonts.check('16px KaTeX_Math'))")


@pytest.mark.parametrize("origin", ["served", "file"])
@pytest.mark.parametrize("name", PAGES)
def test_the_switch_leads_to_the_same_page_and_is_remembered(open_page, served, origin, name):
    page = open_page(address(origin, served, "zh", name), width=390, locale="zh-CN")
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


@pytest.mark.parametrize("origin", ["served", "file"])
@pytest.mark.parametrize("lang", LANGS)
def test_the_clock_turns_by_keyboard(open_page, served, origin, lang):
    page = open_page(address(origin, served, lang, "04_rope"))
    figure = page.locator(".course-figure").first
    before = figure.locator("[aria-live]").first.inner_text()
    figure.locator("input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    assert figure.locator("[aria-live]").first.inner_text() != before


@pytest.mark.parametrize(("lang", "query", "name"), QUERIES)
def test_a_query_finds_its_page_in_its_language(open_page, served, lang, query, name):
    page = open_page(f"{served}/{lang}/{name}.html")
    dialog = page.locator("#pst-search-dialog")
    for _ in range(100):  # the theme's script takes its time until it listens
        page.keyboard.press("Control+k")
        if dialog.is_visible():
            break
        page.wait_for_timeout(50)
    page.keyboard.type(query)
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results a")
    links = [urlsplit(link.get_attribute("href")).path for link in page.locator("#search-results a").all()]
    assert f"/{lang}/{name}.html" in links
    assert all(link.startswith(f"/{lang}/") for link in links)
    assert page.locator("#search-results mark").count() > 0


@pytest.mark.parametrize("query", ["量子纠缠", "zzzz"])
def test_a_query_for_nothing_says_so(open_page, served, query):
    page = open_page(f"{served}/zh/search.html?q={query}")
    page.wait_for_function("document.getElementById('search-status').textContent")
    assert "没有找到" in page.locator("#search-status").inner_text()


@pytest.mark.parametrize(
    ("lang", "query", "words"), [("zh", "RoPE", "make serve"), ("en", "RoPE", "make serve")]
)
def test_from_a_file_the_search_filters_titles_and_says_so(open_page, lang, query, words):
    page = open_page(f"{(SITE / lang / 'search.html').as_uri()}?q={query}")
    assert "04_rope.html" in page.locator("#search-results a").first.get_attribute("href")
    assert words in page.locator("#search-status").inner_text()


def test_chinese_pages_have_no_english_labels(open_page, served):
    page = open_page(f"{served}/zh/04_rope.html")
    labels = page.evaluate(
        """[...document.querySelectorAll("[title], [aria-label], button")]
             .filter((e) => !e.closest("article, .katex") && !e.matches(".lang-switch"))
             .flatMap((e) => [e.title, e.getAttribute("aria-label"), e.dataset.bsTitle])
             .filter((text) => text && /[A-Za-z]{3}/.test(text) && !/[\\u3400-\\u9fff]/.test(text))"""
    )
    assert labels == []


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.ids = [], set()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.links += [attributes[name] for name in ("href", "src") if attributes.get(name)]
        self.ids.add(attributes.get("id"))


def test_every_link_of_the_site_leads_somewhere():
    parsed = {}
    for page in SITE.rglob("*.html"):
        if "_static" not in page.parts and "pagefind" not in page.parts:
            parsed[page] = Links()
            parsed[page].feed(page.read_text("utf8"))
    assert len(parsed) > 2 * len(PAGES)
    dead = []
    for page, content in parsed.items():
        for link in content.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link == "#":
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            known = parsed.get(target)
            if not target.exists() or (parts.fragment and known and unquote(parts.fragment) not in known.ids):
                dead.append(f"{page.relative_to(SITE)}: {link}")
    assert dead == []
