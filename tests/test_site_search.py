"""Search on the built website: by text where it is served, by title where it is opened from a file."""

from urllib.parse import urlsplit

import pytest
import yaml

from book import ROOT

QUERIES = [
    (lang, *pair)
    for lang, pairs in yaml.safe_load((ROOT / "tests" / "search_queries.yml").read_text("utf8")).items()
    for pair in pairs.items()
]


def test_there_are_forty_queries():
    assert len(QUERIES) >= 40


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
def test_from_a_file_the_search_filters_titles_and_says_so(open_page, unpacked, lang, query, words):
    page = open_page(f"{(unpacked / lang / 'search.html').as_uri()}?q={query}")
    assert "04_rope.html" in page.locator("#search-results a").first.get_attribute("href")
    assert words in page.locator("#search-status").inner_text()


def test_one_result_is_not_called_results(open_page, unpacked):
    page = open_page(f"{(unpacked / 'en' / 'search.html').as_uri()}?q=7 Paying")
    assert page.locator("#search-results a").count() == 1
    assert page.locator("#search-status").inner_text().startswith("1 result ")


def test_a_phrase_that_the_index_cuts_otherwise_is_found_by_reading(open_page, served):
    page = open_page(f"{served}/zh/search.html?q=模态")
    page.wait_for_selector("#search-results a")
    assert "/zh/09_multimodal.html" in page.locator("#search-results a").first.get_attribute("href")
    assert page.locator("#search-results mark").first.inner_text() == "模态"


def test_code_is_not_searched(open_page, served):
    page = open_page(f"{served}/en/search.html?q=matplotlib.pyplot")
    page.wait_for_function("document.getElementById('search-status').textContent")
    assert page.locator("#search-results a").count() == 0
