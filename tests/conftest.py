"""Settings of the property tests, equal on every machine; the golden values; kernels without a GPU; a browser and the built site for it."""

import contextlib
import functools
import http.server
import json
import os
import shutil
import threading
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import settings

SITE = Path(__file__).parent.parent / "_build" / "site"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"

settings.register_profile("course", derandomize=True, deadline=None, database=None, max_examples=40)
settings.load_profile("course")

# Triton looks at this when it is imported, and one process cannot do both: interpret kernels and compile them.
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(scope="session")
def goldens():
    return json.loads((Path(__file__).parent / "goldens.json").read_text("utf8"))


@pytest.fixture(scope="session")
def site():
    """Return the folder of the built website."""
    if not (SITE / "pagefind" / "pagefind.js").exists():
        pytest.fail("the website is not built: run 'make book' first, or 'make test', which does")
    return SITE


@pytest.fixture(scope="session")
def unpacked(site, tmp_path_factory):
    """Return the folder that the archive of the website unpacks to."""
    folder = tmp_path_factory.mktemp("archive")
    with zipfile.ZipFile(site / "where-order-lives.zip") as archive:
        archive.extractall(folder)
    return folder / "where-order-lives"


@pytest.fixture(scope="session")
def served(site):
    """Serve the site on this machine and return its address."""
    with serve(site) as address:
        yield address


@contextlib.contextmanager
def serve(folder, handler=http.server.SimpleHTTPRequestHandler):
    """Serve a folder on this machine; the context's value is its address."""

    class Silent(handler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def browser():
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        message = "no Chromium found; on Debian or Ubuntu: apt-get install chromium"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=QUIET.split())
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Return a function that opens an address; the test fails on a fault that the page reports, or a foreign request."""
    faults, contexts = [], []

    def open_page(address, width=1280, prepare=lambda page: None, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.set_default_timeout(10_000)
        page = context.new_page()
        home = urlsplit(address).netloc

        def note_request(request):
            if urlsplit(request.url).netloc not in (home, ""):
                faults.append(f"other host: {request.url}")

        def note_failure(request):
            # What is still on its way when a test leaves the page is aborted by the browser itself.
            if request.failure != "net::ERR_ABORTED":
                faults.append(f"failed: {request.url}")

        page.on("request", note_request)
        page.on("requestfailed", note_failure)
        page.on("response", lambda r: faults.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
        page.on("pageerror", lambda error: faults.append(f"script error: {error}"))
        page.on("console", lambda m: faults.append(f"console: {m.text}") if m.type == "error" else None)
        prepare(page)
        page.goto(address, wait_until="networkidle")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []
