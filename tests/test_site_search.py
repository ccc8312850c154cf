"""Search on the built website: by text where it is served, by title where it is opened from a file."""

import re
from urllib.parse import quote, urlsplit

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


@pytest.mark.parametrize(
    ("query", "other"), [("外推", "推导|推理|外加"), ("内插", "插入|内积"), ("位置编码", "编号|编译")]
)
def test_no_section_is_listed_for_a_word_that_shares_one_character(open_page, served, query, other):
    page = open_page(f"{served}/zh/search.html?q={query}")
    page.wait_for_selector("#search-results a")
    texts = page.locator("#search-results li").evaluate_all(
        "(all) => all.map((e) => [...e.querySelectorAll('mark')].map((m) => m.textContent))"
    )
    assert [mark for marks in texts for mark in marks if re.search(other, mark)] == []
    assert all(texts)
    assert any(query in mark.replace("\u200b", "") for marks in texts for mark in marks)


@pytest.mark.parametrize(
    ("lang", "query", "words"),
    [
        ("en", '"position interpolation"', "position interpolation"),
        ("zh", "“位置内插”", "位置内插"),
        ("zh", "相对位置", "相对位置"),
        ("en", "position interpolation", "position interpolation"),
    ],
)
def test_sections_with_the_whole_query_come_first_with_quotation_marks_or_without(
    open_page, served, lang, query, words
):
    page = open_page(f"{served}/{lang}/search.html?q={quote(query)}")
    page.wait_for_selector("#search-results a")
    texts = page.locator("#search-results p").all_inner_texts()
    whole = [words in text.replace("\u200b", "").lower() for text in texts]
    assert whole == sorted(whole, reverse=True) and whole[0]


@pytest.mark.parametrize(
    "query",
    ["%20", "%20%20YaRN%20", "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "(", "%5B%5C", "a-b=%22c%22 %23"],
)
def test_a_strange_query_does_no_harm(open_page, served, query):
    page = open_page(f"{served}/en/search.html?q={query}")
    page.wait_for_timeout(500)
    assert page.locator("#course-search img").count() == 0
    assert (page.locator("#search-results a").count() > 0) == ("YaRN" in query or query == "(")


def test_code_is_not_searched(open_page, served):
    page = open_page(f"{served}/en/search.html?q=matplotlib.pyplot")
    page.wait_for_function("document.getElementById('search-status').textContent")
    assert page.locator("#search-results a").count() == 0
