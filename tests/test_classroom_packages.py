"""Answers with sympy, torch and Triton: they run in the sandbox, and come out of it as values."""

import importlib.util
import sys

import pytest

from classroom.assignment import pick, read_assignment
from classroom.check import problems
from classroom.grading import grade_submission
from tests.classroom_cases import NEEDS_SANDBOX, job

pytestmark = [pytest.mark.slow, NEEDS_SANDBOX]

SOURCE = """---
kernelspec: {name: python3, display_name: Python 3, language: python}
minutes: 9
packages: [numpy, sympy, torch, triton]
seconds: 30
memory: 4096
---

+++ {"lang": "zh"}

# 大作业

+++ {"lang": "en"}

# A large assignment

```{code-cell} python
import sympy
import torch
import triton
import triton.language as tl
```

```{code-cell} python
:question: {id: 1, points: 2, difficulty: 1, minutes: 3}
def rotation_product(m, n):
    ### BEGIN SOLUTION
    def turn(p):
        c, s = sympy.cos(p), sympy.sin(p)
        return sympy.Matrix([[c, -s], [s, c]])

    return sympy.simplify(turn(m).T * turn(n))
    ### END SOLUTION
```

```{code-cell} python
### BEGIN ADAPTER
def rotation_product_of_symbols():
    return rotation_product(*sympy.symbols("m n"))
### END ADAPTER
```

```{code-cell} python
### BEGIN HIDDEN TESTS
@worth(2, "«提示||hint»")
def the_product_depends_on_the_offset(student, rng):
    matrix = student.call("rotation_product_of_symbols")
    return same_expression(matrix[0][1], lambda m, n: -np.sin(n - m), "m n", rng)
### END HIDDEN TESTS
```

```{code-cell} python
### BEGIN WRONG ANSWER
def rotation_product(m, n):
    return sympy.Matrix([[sympy.cos(m - n), sympy.sin(n - m)], [0, 0]])
### END WRONG ANSWER
```

```{code-cell} python
:question: {id: 2, points: 2, difficulty: 2, minutes: 3}
class Twice(torch.nn.Module):
    def forward(self, x):
        ### BEGIN SOLUTION
        return 2 * x
        ### END SOLUTION
```

```{code-cell} python
### BEGIN ADAPTER
def output_and_gradient(x):
    x = torch.tensor(x, requires_grad=True)
    y = Twice()(x)
    y.sum().backward()
    half = Twice()(x.detach().bfloat16())
    return y, x.grad, str(half.dtype), half
### END ADAPTER
```

```{code-cell} python
### BEGIN HIDDEN TESTS
@worth(1, "«提示||hint»")
def the_output_is_twice_the_input(student, rng):
    x = rng.normal(size=(2, 3))
    return same(student.call("output_and_gradient", x)[0], 2 * x)


@worth(1, "«提示||hint»")
def the_gradient_is_two(student, rng):
    _, gradient, dtype, half = student.call("output_and_gradient", rng.normal(size=(2, 3)))
    return same(gradient, np.full((2, 3), 2.0)) or (None if dtype == "torch.bfloat16" and half.dtype == "float32" else "x")
### END HIDDEN TESTS
```

```{code-cell} python
### BEGIN WRONG ANSWER
class Twice(torch.nn.Module):
    def forward(self, x):
        return 2 * x.detach() + x
### END WRONG ANSWER
```

```{code-cell} python
:question: {id: 3, points: 2, difficulty: 3, minutes: 3}
@triton.jit
def twice_kernel(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    ### BEGIN SOLUTION
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    tl.store(y_ptr + i, 2 * tl.load(x_ptr + i, mask), mask)
    ### END SOLUTION
```

```{code-cell} python
### BEGIN ADAPTER
def twice_by_kernel(x):
    x = torch.tensor(x)
    y = torch.full_like(x, float("nan"))
    twice_kernel[(triton.cdiv(len(x), 4),)](x, y, len(x), BLOCK=4)
    return y
### END ADAPTER
```

```{code-cell} python
### BEGIN HIDDEN TESTS
@worth(2, "«提示||hint»")
def the_kernel_writes_every_number(student, rng):
    x = rng.normal(size=7).astype(np.float32)
    return same(student.call("twice_by_kernel", x), 2 * x)
### END HIDDEN TESTS
```

```{code-cell} python
### BEGIN WRONG ANSWER
@triton.jit
def twice_kernel(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, 2 * tl.load(x_ptr + i))
### END WRONG ANSWER
```
"""


@pytest.fixture
def assignment(tmp_path):
    if not all(map(importlib.util.find_spec, ("sympy", "torch", "triton"))):
        pytest.skip(f"sympy, torch or triton is not installed for Python {sys.version_info[:2]}")
    (tmp_path / "large.md").write_text(SOURCE, "utf8")
    return read_assignment("large", tmp_path)


def test_the_solution_gets_full_marks_and_every_hidden_test_was_wrong_once(assignment):
    assert list(problems(assignment)) == []


def test_a_submission_imports_its_packages_once(assignment):
    result = grade_submission(
        job([pick(question.solution, "en") for question in assignment.questions]), assignment.job(), "seed"
    )
    assert result["points"] == 6 and set(result["versions"]) == {"numpy", "sympy", "torch", "triton"}
