"""The press: from the bilingual source of a lesson to two notebooks and a website."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = ROOT / "chapters"
LANGS = ("zh", "en")
