"""Every link and anchor of the website and of its archive leads somewhere."""

from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from book.lesson import lesson_paths


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.ids = [], set()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.links += [attributes[name] for name in ("href", "src") if attributes.get(name)]
        self.ids.add(attributes.get("id"))


@pytest.mark.parametrize("folder", ["site", "unpacked"])
def test_every_link_leads_somewhere(request, folder):
    folder, parsed = request.getfixturevalue(folder), {}
    for page in folder.rglob("*.html"):
        if "_static" not in page.parts and "pagefind" not in page.parts:
            parsed[page] = Links()
            parsed[page].feed(page.read_text("utf8"))
    assert len(parsed) > 2 * len(lesson_paths())
    dead = []
    for page, content in parsed.items():
        for link in content.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link == "#":
                continue
            # The page for wrong addresses names its links from the root of the host.
            start = folder if parts.path.startswith("/") else page.parent
            path = unquote(parts.path).lstrip("/")
            target = (start / path).resolve() if path else page
            known = parsed.get(target)
            if not target.exists() or (parts.fragment and known and unquote(parts.fragment) not in known.ids):
                dead.append(f"{page.relative_to(folder)}: {link}")
    assert dead == []
