"""The kernels of lesson 10 for the tests: its own solutions, and the same with a mistake put in."""

import linecache
from itertools import count

import triton
import triton.language as tl

from book import CHAPTERS
from book.lesson import WORDS, read_lesson, split_solution

_NUMBERS = count()


def solution(number):
    """The source of the kernel that solves exercise `number`, such as "10.5"."""
    for cell in read_lesson(CHAPTERS / "10_kernels.md")[1]:
        if cell.kind == "code" and f'check("{number}"' in cell.source and "@triton.jit" in cell.source:
            before, written, after = split_solution(cell.source)
            source = "\n".join([*before, *written, *after]).split("\ncheck(")[0]
            return WORDS.sub(r"\2", source).strip() + "\n"
    raise LookupError(number)


def kernel(source):
    """The kernel of a source, which `inspect` can find again as it can that of a notebook's cell."""
    file = f"<kernel {next(_NUMBERS)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    namespace = {"triton": triton, "tl": tl, "__name__": __name__}
    exec(compile(source, file, "exec"), namespace)
    return next(value for value in namespace.values() if hasattr(value, "fn"))


def right(number):
    return kernel(solution(number))


def wrong(number, *changes):
    """The solution with each `old` of the (old, new) pairs, which must be there, replaced by `new`."""
    source = solution(number)
    for old, new in changes:
        assert old in source, (number, old)
        source = source.replace(old, new)
    return kernel(source)
