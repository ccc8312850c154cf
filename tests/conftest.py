"""Settings of the property tests, equal on every machine, and the golden values."""

import json
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("course", derandomize=True, deadline=None, database=None, max_examples=40)
settings.load_profile("course")


@pytest.fixture(scope="session")
def goldens():
    return json.loads((Path(__file__).parent / "goldens.json").read_text("utf8"))
