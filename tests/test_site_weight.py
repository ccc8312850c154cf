"""What a page moves over the network, and whether it jumps while it loads."""

import gzip
import http.server
from pathlib import Path

import pytest

from book import LANGS
from book.lesson import lesson_paths
from tests.conftest import serve

PAGES = [path.stem for path in lesson_paths()]
COUNT_SHIFTS = """window.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });"""


class Compressing(http.server.SimpleHTTPRequestHandler):
    """A server as the usual hosts of static sites are: it compresses text and lets the browser keep files."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return self.send_error(404)
        content = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Cache-Control", "max-age=600")
        if path.suffix in (".html", ".css", ".js", ".svg"):
            content = gzip.compress(content, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture(scope="module")
def host(site):
    with serve(site, Compressing) as address:
        yield address


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_light_and_does_not_jump(open_page, host, name, lang, width):
    moved = []

    def prepare(page):
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.loadingFinished", lambda event: moved.append(event["encodedDataLength"]))
        page.add_init_script(COUNT_SHIFTS)

    page = open_page(f"{host}/{lang}/{name}.html", width, prepare)
    assert sum(moved) <= 300_000
    assert sum(size > 0 for size in moved) <= 25
    assert page.evaluate("window.shift") <= 0.02
    moved.clear()
    page.goto(page.url, wait_until="networkidle")
    assert sum(moved) <= 40_000
