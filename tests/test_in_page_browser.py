"""Cells that run in the page, in a real browser that reaches this site only."""

import re

import pytest

from book import LANGS, npm
from tests.test_site_access import violations

PAGE = "04_rope"
DONE = re.compile("完成|Done|出错|Error|失败|failed|停止|Stopped")
LOADING = 90_000  # milliseconds, for a machine with much else to do


class Runner:
    """A page, and its cells by the code that is in them."""

    def __init__(self, page):
        self.page = page
        self.requests = []
        page.on("request", lambda request: self.requests.append(request.url))

    def cell(self, words):
        """The first cell whose editor holds `words`."""
        for node in self.page.locator("div.cell:has(> .run-bar)").all():
            if words in node.locator("textarea").input_value():
                return node
        raise AssertionError(f"no cell with a Run button holds {words!r}")

    def run(self, node, source=None):
        """Run a cell, with other code if given, and return (status, text of its results)."""
        if source is not None:
            node.locator("textarea").fill(source)
        node.locator(".run-status").evaluate("(status) => { status.textContent = ''; }")
        node.locator(".run-go").click()
        return self.finish(node)

    def finish(self, node):
        self.page.wait_for_function(
            "([node, done]) => new RegExp(done).test(node.querySelector('.run-status').textContent)"
            " && /▶/.test(node.querySelector('.run-go').textContent)",
            arg=[node.element_handle(), DONE.pattern],
            timeout=LOADING,
        )
        return node.locator(".run-status").inner_text(), node.locator(".run-out").inner_text()


@pytest.fixture
def runner(open_page, served):
    return lambda lang="en", **options: Runner(open_page(f"{served}/{lang}/{PAGE}.html", **options))


@pytest.mark.parametrize("lang", LANGS)
def test_a_proof_runs_after_the_cells_that_it_stands_on_and_an_edited_cell_shows_its_new_result(runner, lang):
    at = runner(lang)
    assert at.requests == []
    proof = at.cell("def big_rotation")
    status, result = at.run(proof)
    assert re.search("完成|Done", status), (status, result)
    assert any("/python/" in url for url in at.requests)
    assert proof.locator(".run-out .katex, .run-out pre").count()
    _, result = at.run(at.cell("def turn(x, position)"), "print(sympy.expand((1 + sympy.I) ** 2))")
    assert result.strip() == "2*I"


def test_an_exception_names_its_line_and_leaves_the_rest_alive(runner):
    at = runner()
    node = at.cell("def big_rotation")
    status, result = at.run(node, "answer = 1\nanswer / 0")
    assert status == "Error"
    assert "ZeroDivisionError" in result and "line 2" in result and "answer / 0" in result
    assert "pyodide" not in result
    assert at.run(node, "answer + 1")[1].strip() == "2"


def test_what_a_cell_prints_is_text_and_never_mark_up(runner):
    at = runner()
    at.page.evaluate("window.harmed = false")
    source = """print("<img src=x onerror='harmed = true'>")
class Sly:
    def _repr_html_(self): return "<script>harmed = true</script>"
    def _repr_latex_(self): return r"$\\href{javascript:harmed=true}{x}$"
Sly()"""
    node = at.cell("def big_rotation")
    _, result = at.run(node, source)
    assert "<img src=x" in result
    assert node.locator(".run-out :is(img, script, a)").count() == 0
    assert at.page.evaluate("window.harmed") is False


def test_nothing_in_the_address_is_run_or_shown(open_page, served):
    at = Runner(open_page(f"{served}/en/{PAGE}.html?code=print(1)&run=1#run"))
    at.page.wait_for_timeout(500)
    assert not [url for url in at.requests if "/python/" in url]
    assert "print(1)" not in at.page.content()


@pytest.mark.parametrize(
    "source", ["while True: pass", "while True: print('again')", "while True: display('x' * 1000)"]
)
def test_a_loop_without_end_never_freezes_the_page_and_can_be_stopped(runner, source):
    at = runner("zh")
    node = at.cell("def big_rotation")
    assert re.search("完成", at.run(node, "1 + 1")[0])
    node.locator("textarea").fill(source)
    node.locator(".run-go").click()
    at.page.wait_for_timeout(1500)
    assert at.page.evaluate("document.title")  # answers
    assert "停止" in node.locator(".run-go").inner_text()
    node.locator(".run-go").click()
    status, result = at.finish(node)
    assert "已停止" in status
    assert len(result) < 110_000
    assert node.locator(".run-out > *").count() < 250
    status, result = at.run(node, "2 + 2")
    assert result.strip() == "4", status


def test_after_a_failed_download_the_next_click_recovers(browser, served):
    context = browser.new_context()
    page = context.new_page()
    at = Runner(page)
    page.goto(f"{served}/en/{PAGE}.html", wait_until="networkidle")
    page.route("**/python/**/*.wasm.bin", lambda route: route.abort())
    node = at.cell("def big_rotation")
    assert "Loading failed" in at.run(node, "1 + 1")[0]
    page.unroute("**/python/**/*.wasm.bin")
    assert at.run(node, "1 + 1")[1].strip() == "2"
    context.close()


def test_reset_brings_back_the_code_and_the_built_result(runner):
    at = runner()
    node = at.cell("def big_rotation")
    before = node.locator("textarea").input_value()
    at.run(node, "print('mine')")
    node.get_by_role("button", name="Reset").click()
    assert node.locator("textarea").input_value() == before
    assert node.locator(".run-out").is_hidden()
    assert node.locator(".cell_output:not(.run-out)").first.is_visible()


def test_the_keyboard_alone_edits_runs_stops_and_resets(runner):
    at = runner()
    node = at.cell("def big_rotation")
    keyboard = at.page.keyboard
    node.locator("textarea").focus()
    keyboard.press("Control+A")
    keyboard.type("for i in range(2):\nprint(i)")
    assert node.locator("textarea").input_value() == "for i in range(2):\n    print(i)"
    keyboard.press("Control+Enter")
    assert at.finish(node)[1].split() == ["0", "1"]
    keyboard.press("Tab")
    if at.page.evaluate("document.activeElement.classList.contains('copybtn')"):
        keyboard.press("Tab")
    assert at.page.evaluate("document.activeElement.className") == "run-go"
    keyboard.press("Tab")
    assert at.page.evaluate("document.activeElement.textContent") == "Reset"
    keyboard.press("Enter")
    assert "big_rotation" in node.locator("textarea").input_value()


def test_enter_belongs_to_the_input_method_while_it_composes(runner):
    at = runner("zh")
    node = at.cell("def big_rotation")
    node.locator("textarea").fill("")
    node.locator("textarea").focus()
    session = at.page.context.new_cdp_session(at.page)
    session.send("Input.imeSetComposition", {"text": "zhong", "selectionStart": 5, "selectionEnd": 5})
    node.locator("textarea").dispatch_event("keydown", {"key": "Enter", "ctrlKey": True, "isComposing": True})
    session.send("Input.insertText", {"text": "中"})
    assert node.locator("textarea").input_value() == "中"
    # Safari has ended the composition when the key arrives, and gives the old code for "in use by the input method".
    node.locator("textarea").dispatch_event("keydown", {"key": "Enter", "keyCode": 229})
    node.locator("textarea").dispatch_event("keydown", {"key": "Enter", "ctrlKey": True, "keyCode": 229})
    assert node.locator("textarea").input_value() == "中"
    assert not [url for url in at.requests if "/python/" in url]


def test_the_cell_that_was_clicked_tells_how_the_cells_above_it_get_on(runner):
    at = runner("zh")
    proof = at.cell("def big_rotation")
    proof.evaluate(
        """(node) => {
          window.told = [];
          const status = node.querySelector(".run-status");
          new MutationObserver(() => told.push(status.textContent)).observe(status, { childList: true });
        }"""
    )
    assert "完成" in at.run(proof)[0]
    told = " ".join(at.page.evaluate("told"))
    parts = re.findall(r"([\d.]+) / ([\d.]+) MB", told)
    assert parts and all(float(got) <= float(size) for got, size in parts)
    assert "正在运行" in told


def test_what_a_cell_shows_twice_stands_on_two_lines(runner):
    at = runner()
    assert at.run(at.cell("def big_rotation"), "display(1)\ndisplay(2)")[1].split() == ["1", "2"]


@pytest.mark.parametrize(
    ("source", "words"), [("'x' * 10**7", "'xxx"), ("raise ValueError('x' * 10**7)", "ValueError")]
)
def test_a_long_result_is_cut(runner, source, words):
    at = runner()
    _, result = at.run(at.cell("def big_rotation"), source)
    assert words in result and len(result) < 110_000


def test_an_error_after_a_flood_is_still_shown(runner):
    at = runner()
    _, result = at.run(at.cell("def big_rotation"), "for i in range(10**5): print(i)\n1 / 0")
    assert "ZeroDivisionError" in result


def test_a_python_that_broke_down_is_replaced(runner):
    at = runner()
    node = at.cell("def big_rotation")
    node.locator("textarea").fill("import os\nos._exit(1)")
    node.locator(".run-go").click()
    at.page.wait_for_function(
        "(node) => /broke down/.test(node.querySelector('.run-status').textContent)",
        arg=node.element_handle(),
        timeout=LOADING,
    )
    assert at.run(node, "1 + 1")[1].strip() == "2"


def test_a_double_click_and_a_held_key_start_one_run_and_stop_none(runner):
    at = runner()
    node = at.cell("def big_rotation")
    node.locator("textarea").fill("import time\ntime.sleep(1)\n'whole'")
    node.locator(".run-go").dblclick()
    assert "whole" in at.finish(node)[1]
    node.locator("textarea").focus()
    at.page.keyboard.down("Control")
    for _ in range(3):
        at.page.keyboard.down("Enter")
    at.page.keyboard.up("Enter")
    at.page.keyboard.up("Control")
    assert at.finish(node) == (node.locator(".run-status").inner_text(), "'whole'")
    assert "Done" in node.locator(".run-status").inner_text()


def test_reset_stops_the_cell_that_runs(runner):
    at = runner()
    node = at.cell("def big_rotation")
    before = node.locator("textarea").input_value()
    node.locator("textarea").fill("while True: pass")
    node.locator(".run-go").click()
    at.page.wait_for_timeout(500)
    node.get_by_role("button", name="Reset").click()
    assert "Stopped" in at.finish(node)[0]
    assert node.locator("textarea").input_value() == before
    assert node.locator(".run-out").is_hidden()


def test_what_the_reader_changed_outlives_a_reload_and_the_other_language_until_reset(runner):
    at = runner("zh")
    at.cell("def big_rotation").locator("textarea").fill("x = 1  # 我的")
    at.page.reload(wait_until="networkidle")
    node = at.cell("我的")
    assert node.locator("pre").first.inner_text().strip() == "x = 1  # 我的"
    assert "还原" in node.locator(".run-status").inner_text()
    assert not [url for url in at.requests if "/python/" in url]
    at.page.locator("a.lang-switch").click()
    at.page.wait_for_url("**/en/**")
    at.page.go_back(wait_until="networkidle")
    at.cell("我的").get_by_role("button", name="还原").click()
    at.page.reload(wait_until="networkidle")
    assert at.cell("def big_rotation")


def test_a_result_stands_where_that_of_the_build_stood(runner):
    at = runner(width=390)
    places = """(node) => [...node.querySelectorAll(".cell_output")].map((out) => out.hidden ? [] :
      [...out.querySelectorAll(".math, pre")].map((box) => box.getBoundingClientRect()).map((r) => [r.left, r.right]))"""
    for words in ("def big_rotation", "stretch ="):
        node = at.cell(words)
        _, built = node.evaluate(places)
        assert "Done" in at.run(node)[0]
        node.locator(".run-out .katex").first.wait_for()
        assert node.evaluate(places)[0] == built and built


def test_on_paper_the_code_of_a_cell_with_buttons_is_whole(runner):
    at = runner(width=390)
    at.page.emulate_media(media="print")
    cut = "(all) => all.filter((e) => e.scrollWidth > e.clientWidth + 1).length"
    assert at.page.locator(".run-edit").evaluate_all(cut) == 0


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_axe_finds_nothing_on_a_page_after_cells_have_run(runner, mode):
    at = runner(color_scheme=mode, reduced_motion="reduce")
    node = at.cell("def big_rotation")
    at.run(node)
    at.run(at.cell("def turn(x, position)"), "1 / 0")
    at.page.evaluate((npm.unpacked("axe-core", "4.14.1") / "axe.min.js").read_text("utf8"))
    at.page.wait_for_timeout(400)
    assert violations(at.page) == []


def test_a_page_opened_from_the_disk_shows_no_buttons(open_page, unpacked):
    page = open_page(f"{unpacked.as_uri()}/en/{PAGE}.html")
    assert page.locator(".run-bar").count() == 0
    assert page.locator(".cell_input pre").count()


def test_a_page_without_such_cells_loads_nothing_for_them(open_page, served):
    page = open_page(f"{served}/en/a_sources.html")
    assert page.locator("script[src*='run.js'], link[href*='run.css'], #run-in-page").count() == 0
