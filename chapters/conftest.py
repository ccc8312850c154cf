"""nbval leaves out the notebooks whose packages (torch, triton) are not installed here."""

from tests.test_editions import RUNS_HERE, WITH_CODE

collect_ignore = [
    f"{lang}/{path.stem}.ipynb" for path in WITH_CODE if path not in RUNS_HERE for lang in ("zh", "en")
]
