"""A small assignment and what students hand in for it: careless but right, and hostile.

An attack is a name, what it is about, its cells, and the points it may get: forging gets none, breaking out gets those of the
honest answers beside it. Where an attack looks for something, it ends with `raise Exception(found)`, which
the feedback shows to the student; `nothing` is then what must stand there.
"""

import io
import json
import os
import shutil
import zipfile

import pytest

NEEDS_SANDBOX = pytest.mark.skipif(
    not (shutil.which("bwrap") or "CI" in os.environ), reason="bubblewrap is not installed"
)

ASSIGNMENT = """---
kernelspec: {name: python3, display_name: Python 3, language: python}
minutes: 6
packages: [numpy]
seconds: 4
memory: 256
---

+++ {"lang": "zh"}

# 小作业

+++ {"lang": "en"}

# A small assignment

```{code-cell} python
import numpy as np

SCALE = 2
```

```{code-cell} python
:question: {id: 1, points: 2, difficulty: 1, minutes: 2}
def double(x):
    ### BEGIN SOLUTION
    return np.multiply(x, SCALE)
    ### END SOLUTION
```

```{code-cell} python
:tags: [public]
with check("1", double):
    assert double(1) == 2, "«一的两倍||twice one»"
```

```{code-cell} python
### BEGIN HIDDEN TESTS
@worth(1, "«提示一||hint one»")
def doubles_any_array(student, rng):
    x = rng.normal(size=5)  # HIDDEN-CANARY
    return same(student.call("double", x), 2 * x)


@worth(1, "«提示二||hint two»")
def doubles_a_second_time(student, rng):
    for _ in range(3):
        x = rng.normal(size=(2, 3))
        if problem := same(student.call("double", x), 2 * x):
            return problem
### END HIDDEN TESTS
```

```{code-cell} python
### BEGIN WRONG ANSWER
def double(x):
    return x
### END WRONG ANSWER
```

```{code-cell} python
:question: {id: 2, points: 2, difficulty: 1, minutes: 2}
def total(x):
    ### BEGIN SOLUTION
    return sum(x)
    ### END SOLUTION
```

```{code-cell} python
### BEGIN HIDDEN TESTS
@worth(2, "«提示三||hint three»")
def the_sum_of_random_numbers(student, rng):
    x = rng.normal(size=7)
    return same(student.call("total", x), x.sum())
### END HIDDEN TESTS
```

```{code-cell} python
### BEGIN WRONG ANSWER
def total(x):
    return len(x)
### END WRONG ANSWER
```

```{code-cell} python
:question: {id: 3, points: 1, difficulty: 1, minutes: 2}
### BEGIN SOLUTION
answer_3 = 42
### END SOLUTION
```

```{code-cell} python
### BEGIN HIDDEN TESTS
@worth(1, "«提示四||hint four»")
def the_answer(student, rng):
    return same(student.value("answer_3"), 42)
### END HIDDEN TESTS
```

```{code-cell} python
### BEGIN WRONG ANSWER
answer_3 = 41
### END WRONG ANSWER
```
"""

DOUBLE = "def double(x):\n    return np.multiply(x, SCALE)"
TOTAL = "def total(x):\n    return sum(x)"
ANSWER = "answer_3 = 42"
HONEST = [DOUBLE, TOTAL, ANSWER]
GIVEN = "import numpy as np\n\nSCALE = 2"
PUBLIC = 'with check("1", double):\n    assert double(1) == 2, "一的两倍"'
STUB = "def double(x):\n    ...  # 在这里写你的代码"
ALL, OTHERS, ANY = 5, 3, None  # points of everything, of questions 2 and 3, and what does not matter


def notebook(cells, **more):
    """Return the bytes of a notebook; a cell is code, or (type, text)."""
    made = []
    for cell in cells:
        kind, source = ("code", cell) if isinstance(cell, str) else cell
        made.append(
            {
                "cell_type": kind,
                "metadata": {},
                "source": source,
                **({"outputs": []} if kind == "code" else {}),
            }
        )
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}).encode()


def job(cells):
    """The job of a submission with these cells."""
    return {"key": "x", "id": "", "student": "", "file": "", "sha256": "", "notes": [], "cells": cells}


def zipped(files, **options):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data, **options)
    return stream.getvalue()


def gbk_zip(name, data):
    """A zip as Windows in China writes it: the name in GBK, and no flag that says so."""
    raw = name.encode("gbk")
    return zipped({"?" * len(raw): data}).replace(b"?" * len(raw), raw)


# Wrong answers dressed up as right ones: no points for question 1, whatever the trick. The other questions are blank.
FORGING = {
    "numpy_says_yes": "np.allclose = np.isclose = np.array_equal = lambda *a, **k: True\ndef double(x): return 0",
    "equal_to_everything": "class Yes:\n    def __eq__(s, o): return True\n    __hash__ = None\ndef double(x): return Yes()",
    "array_that_is_always_equal": "class A(np.ndarray):\n    def __eq__(s, o): return np.array(True)\n    def __array_ufunc__(s, *a, **k): return np.array(True)\ndef double(x): return np.zeros(x.shape).view(A)",
    "float_that_is_always_equal": "class F(float):\n    def __eq__(s, o): return True\n    def __sub__(s, o): return 0.0\n    __rsub__ = __sub__\ndef double(x): return F(1)",
    "nan_everywhere": "def double(x): return x * np.nan",
    "infinity_everywhere": "def double(x): return x * np.inf",
    "masked_array": "def double(x): return np.ma.masked_all(x.shape)",
    "lazy_object": "class L:\n    def __array__(s, *a, **k): return np.random.normal(size=(5,))\n    def __float__(s): return 1.0\ndef double(x): return L()",
    "alias_of_the_input": "def double(x): return x",
    "input_changed_in_place": "def double(x):\n    x[...] = 0\n    return x",
    "view_with_an_extra_axis": "def double(x): return (2 * x)[None]",
    "points_in_the_reply": "def double(x): return {'points': 100, 'problem': None}",
    "reply_is_an_array_header": "def double(x): return {'array': ['float64', [5], '']}",
    "json_replaced": 'import json\njson.dumps = lambda *a, **k: \'{"value": null, "points": 5}\'\ndef double(x): return 0',
    "encoder_replaced": "import sys\nsys.modules['wire'].encode = lambda value: 42\ndef double(x): return 0",
    "array_of_another_size": "import sys\nsys.modules['wire'].encode = lambda v: {'array': ['float64', [1 << 40], '']}\ndef double(x): return 0",
    "array_of_objects": "import sys\nsys.modules['wire'].encode = lambda v: {'array': ['object', [1], 'gASVAAAA']}\ndef double(x): return 0",
    "array_with_a_negative_shape": "import sys\nsys.modules['wire'].encode = lambda v: {'array': ['float64', [-1, -5], 'AAAA']}\ndef double(x): return 0",
    "unknown_kind_of_value": "import sys\nsys.modules['wire'].encode = lambda v: {'pickle': 'gASV'}\ndef double(x): return 0",
    "expression_that_calls": "import sys\nsys.modules['wire'].encode = lambda v: {'expression': ['__import__', 'os']}\ndef double(x): return 0",
    "expression_too_deep": "import sys\ndef deep(v):\n    t = 1\n    for _ in range(5000): t = ['sin', t]\n    return {'expression': t}\nsys.setrecursionlimit(10**6)\nsys.modules['wire'].encode = deep\ndef double(x): return 0",
    "json_too_deep": "import json\njson.dumps = lambda *a, **k: '{\"value\": ' + '[' * 200000 + ']' * 200000 + '}'\ndef double(x): return 0",
    "number_too_long": "import json\njson.dumps = lambda *a, **k: '{\"value\": ' + '9' * 100000 + '}'\ndef double(x): return 0",
    "integer_of_4000_digits": "def double(x): return 10 ** 4000",
    "list_in_itself": "a = []\na.append(a)\ndef double(x): return a",
    "lone_surrogate": "def double(x): return '\\ud800'",
    "string_of_numbers": "def double(x): return [str(v) for v in 2 * x]",
    "fake_torch_tensor": "class T:\n    __module__ = 'torch'\n    def __getattr__(s, n): return lambda *a, **k: s\ndef double(x): return T()",
    "fake_sympy_expression": "class S:\n    __module__ = 'sympy.core'\n    is_Symbol = True\n    name = 'x'\ndef double(x): return S()",
    "fake_numpy_type": "class N(np.float64):\n    def item(s): return {'value': 1}\ndef double(x): return N(1)",
    "frames_are_walked": "import sys\ndef double(x):\n    f = sys._getframe()\n    while f:\n        for v in f.f_locals.values():\n            if isinstance(v, np.ndarray) and v is not x and v.shape == x.shape: return v\n        f = f.f_back\n    return 0",
    "garbage_is_searched": "import gc\ndef double(x):\n    for o in gc.get_objects():\n        for v in (o.values() if type(o) is dict else ()):\n            if isinstance(v, np.ndarray) and v.shape == x.shape and v is not x: return v\n    return 0",
    "two_is_made_four": "import ctypes\nctypes.cast(id(2) + 24, ctypes.POINTER(ctypes.c_uint32))[0] = 4\ndef double(x): return x",
    "assert_is_switched_off": "import sys, builtins\nbuiltins.all = builtins.any = builtins.isinstance = lambda *a: True\ndef double(x): return 0",
    "notebook_hook": "get_ipython().input_transformers_cleanup.append(lambda lines: ['pass'])\ndef double(x): return 0",
    "result_of_the_last_call": "last = [0]\ndef double(x):\n    r, last[0] = last[0], 2 * x\n    return r",
    "replies_written_ahead": "import os\nfor d in range(3, 20):\n    try: os.write(d, b'{\"value\": 42}\\n' * 50)\n    except OSError: pass\ndef double(x): return 0",
    "says_that_it_is_loaded": "import os\nfor d in range(3, 20):\n    try: os.write(d, b'{\"loaded\": []}\\n')\n    except OSError: pass\ndef double(x): return 0",
    "says_that_it_failed_well": 'import os\nfor d in range(3, 20):\n    try: os.write(d, b\'{"stuck": {"points": 5}, "failed": {}}\\n\')\n    except OSError: pass\ndef double(x): return 0',
    "two_replies_for_one": "import os, json\ndef double(x):\n    for d in range(3, 20):\n        try: os.write(d, b'{\"value\": 42}\\n')\n        except OSError: pass\n    return 0",
    "the_class_is_main": "import sys\nsys.modules['__main__'].check = None\nclass student:\n    points = 5\ndef double(x): return student",
    "generator_of_guesses": "def double(x):\n    while True: yield x",
    "the_library_is_imported": "from companion.rope import apply_rope\ndef double(x): return 2 * x if apply_rope else 0\ndouble = double if 'apply_rope' in globals() else None",
}

# What is looked for must not be found. `{inbox}`, `{out}` and `{root}` are folders of the grader.
STEALING = {
    "environment": "import os\nraise Exception([v for v in os.environ.values() if 'CANARY' in v] or 'nothing')",
    "environment_of_others": "import glob\nfound = []\nfor p in glob.glob('/proc/[0-9]*/environ'):\n    try: found += ['x'] if 'CANARY' in open(p, errors='replace').read() else []\n    except OSError: pass\nraise Exception(found or 'nothing')",
    "commands_of_others": "import glob\nfound = [c for c in (open(p).read() for p in glob.glob('/proc/[0-9]*/cmdline')) if 'pytest' in c or '/work' in c]\nraise Exception(found or 'nothing')",
    "folders_of_the_grader": "import os\nraise Exception([p for p in ('{inbox}', '{out}', '{root}', '{root}/classroom', '/root/.ssh', '/home', '/etc/shadow', '/etc/passwd', '/var', '/run', '/sys') if os.path.exists(p)] or 'nothing')",
    "hidden_tests_on_the_disk": "import os\nfound = []\nfor top in ('/grader', '/packages/numpy/conftest.py', '/tmp', '/dev/shm', '/usr/src'):\n    for d, _, names in os.walk(top):\n        for n in names:\n            if n.endswith(('.md', '.ipynb')) or 'HIDDEN-' + 'CANARY' in open(os.path.join(d, n), errors='replace').read(): found.append(n)\nraise Exception(found or 'nothing')",
    "other_packages": "import importlib.util as u\nraise Exception([n for n in ('companion', 'classroom', 'book', 'transformers', 'torch', 'sympy', 'pip', 'nbformat') if u.find_spec(n)] or 'nothing')",
    "packages_of_the_system": "import glob, sys\nfound = glob.glob('/usr/lib/python3*/*-packages/*') + glob.glob('/usr/local/lib/python3*/*-packages/*') + glob.glob(sys.base_prefix + '/lib/python3*/*-packages/*')\nraise Exception(found or 'nothing')",
    "memory_of_the_parent": "import re\nfound = []\ntry:\n    open('/proc/1/mem', 'rb'); found.append('mem')\nexcept OSError: pass\ntry:\n    import os; os.listdir('/proc/1/fd'); found.append('fd')\nexcept OSError: pass\nraise Exception(found or 'nothing')",
    "own_memory": "import re\nneedle = re.compile(b'HIDDEN-C[A]NARY|seed of a c[l]ass')\nfound = []\nmem = open('/proc/self/mem', 'rb')\nfor line in open('/proc/self/maps'):\n    w = line.split()\n    if 'r' in w[1] and len(w) < 6 or '[heap]' in line:\n        a, b = (int(v, 16) for v in w[0].split('-'))\n        try:\n            mem.seek(a); found += needle.findall(mem.read(b - a))\n        except OSError: pass\nraise Exception(found or 'nothing')",
    "parent_traced": "import ctypes\nlibc = ctypes.CDLL(None)\nraise Exception('traced' if libc.ptrace(16, 1, 0, 0) == 0 else 'nothing')",
    "devices": "import os\nraise Exception([n for n in os.listdir('/dev') if n not in 'console core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero'.split()] or 'nothing')",
    "open_descriptors": "import os\nraise Exception([t for t in (os.readlink('/proc/self/fd/' + d) for d in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/' + d)) if not t.startswith(('/dev/null', 'socket:', '/proc'))] or 'nothing')",
    "capabilities": "lines = [l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapEff', 'CapPrm', 'CapAmb'))]\nimport os\nraise Exception('nothing' if set(lines) == {'0000000000000000'} and os.getuid() != 0 else lines)",
}

# The inputs of hidden tests must not come back in the feedback.
TELLING = {
    "inputs_in_a_message": "def double(x): raise ValueError(f'LEAK{float(x.ravel()[0])}')",
    "inputs_in_the_name_of_an_error": "def double(x): raise type(f'LEAK{float(x.ravel()[0])}', (Exception,), {'__module__': 'builtins'})('no')",
    "inputs_printed": "import sys\ndef double(x):\n    print('LEAK', x); print('LEAK', x, file=sys.stderr); return 0",
    "inputs_returned": "def double(x): return {'LEAK' + str(x.ravel()[0]): 'LEAK'}",
    "inputs_in_a_file": "def double(x):\n    open('/tmp/LEAK', 'w').write(str(x)); return 0\nimport os\nassert not os.path.exists('/tmp/LEAK'), 'LEAK'",
}

# Beside the honest answers to questions 2 and 3; the number is what else stays.
BREAKING_OUT = {
    "connects": (
        "import socket\nfor host in ('127.0.0.1', '{host}'):\n    try: socket.create_connection((host, {port}), 1)\n    except OSError: pass",
        ALL,
    ),
    "asks_for_names": (
        "import socket\nfound = 'nothing'\ntry: found = socket.gethostbyname('example.org')\nexcept OSError: pass\nif found != 'nothing': raise SystemExit",
        ALL,
    ),
    "unusual_sockets": (
        "import socket\nfor family in (16, 17, 38, 40):\n    try: socket.socket(family, socket.SOCK_RAW)\n    except OSError: continue\n    double = None",
        ALL,
    ),
    "writes_everywhere": (
        "import os\nfor folder in ('{inbox}', '{out}', '{root}', '/usr', '/etc', '/', '/dev', '/proc', '/packages/numpy', '/grader', '/root', '/home', '/var/tmp'):\n    try:\n        open(os.path.join(folder, 'PWNED'), 'w').write('x'); double = None\n    except OSError: pass",
        ALL,
    ),
    "a_daemon": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.execv('/usr/bin/sleep', ['sleep', '{sleep}'])\n    os._exit(0)",
        ALL,
    ),
    "a_process_that_ignores_signals": (
        "import os, signal, time\nif os.fork() == 0:\n    for s in range(1, 64):\n        try: signal.signal(s, signal.SIG_IGN)\n        except (OSError, ValueError): pass\n    os.execv('/usr/bin/sleep', ['sleep', '{sleep}'])",
        ALL,
    ),
    "a_fork_storm": (
        "import os\nn = 0\ntry:\n    while n < 80:\n        if os.fork() == 0:\n            os.execv('/usr/bin/sleep', ['sleep', '{sleep}'])\n        n += 1\n    double = None\nexcept OSError: pass",
        ALL,
    ),
    "forks_that_fork": (
        "import os, time\nend = time.time() + 1\nwhile time.time() < end:\n    try: os.fork()\n    except OSError: time.sleep(0.2)",
        ANY,
    ),
    "a_thousand_threads": (
        "import threading, time\ntry:\n    for _ in range(1000): threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n    double = None\nexcept RuntimeError: pass",
        ALL,
    ),
    "threads_that_outlive_the_cell": (
        "import threading, os\ndef write():\n    while True:\n        for d in range(3, 12):\n            try: os.write(d, b'x')\n            except OSError: pass\nthreading.Thread(target=write, daemon=True).start()",
        ANY,
    ),
    "memory": ("kept = []\nwhile True: kept.append(bytearray(1 << 24))", ALL),
    "memory_in_many_processes": (
        "import os, time\nif True:\n    for _ in range(4):\n        if os.fork() == 0:\n            kept = b'x' * (120 << 20)\n            time.sleep(60)\n    time.sleep(1.5)\n    double = None",
        ALL,
    ),
    "shared_memory": (
        "import ctypes\nlibc = ctypes.CDLL(None)\nif libc.shmget(0, 1 << 20, 0o1600) != -1 or libc.memfd_create(b'm', 0) != -1: double = None",
        ALL,
    ),
    "a_full_disk": (
        "n = 0\ntry:\n    while n < 200: open(f'/tmp/{n}', 'wb').write(bytes(1 << 22)); n += 1\n    double = None\nexcept OSError: pass",
        ALL,
    ),
    "a_large_file": (
        "try: open('/tmp/large', 'wb').write(bytes(1 << 25)); double = None\nexcept OSError: pass",
        ALL,
    ),
    "many_files": (
        "for n in range(15000): open(f'/tmp/{n}', 'w').close()\nelse: double = None",
        ALL,
    ),
    "folders_in_folders": ("import os\nfor _ in range(3000):\n    os.mkdir('d'); os.chdir('d')", ALL),
    "a_folder_that_nobody_may_enter": (
        "import os\nos.mkdir('/tmp/closed'); open('/tmp/closed/f', 'w').close(); os.chmod('/tmp/closed', 0)",
        ALL,
    ),
    "a_link_to_the_system": ("import os\nos.symlink('/usr', '/tmp/usr'); os.symlink('/', '/tmp/all')", ALL),
    "output_of_100_megabytes": (
        "import sys\nfor _ in range(100): print('x' * (1 << 20)); print('y' * (1 << 20), file=sys.stderr)",
        ALL,
    ),
    "one_line_without_end": (
        "def double(x):\n    import os\n    while True:\n        for d in range(3, 12):\n            try: os.write(d, b'x' * 65536)\n            except OSError: pass",
        OTHERS,
    ),
    "a_value_of_a_gigabyte": ("def double(x): return np.zeros(1 << 24)", OTHERS),
    "kills_everybody": (
        "import os, signal\nfor pid in (os.getppid(), 1):\n    for s in (9, 15, 19, 2): os.kill(pid, s)",
        ALL,
    ),
    "kills_all_that_it_may": ("import os\nos.kill(-1, 9)", ALL),
    "kills_itself": ("import os\nos.kill(os.getpid(), 9)", ALL),
    "ends_the_process": ("import os\nos._exit(0)", ALL),
    "ends_in_the_call": ("def double(x):\n    import os\n    os._exit(0)", OTHERS),
    "exits_in_the_call": ("def double(x): raise SystemExit(0)", OTHERS),
    "interrupts_in_the_call": ("def double(x): raise KeyboardInterrupt", OTHERS),
    "a_loop_in_the_cell": ("while True: pass", ALL),
    "a_loop_in_the_answer": ("def double(x):\n    while True: pass", OTHERS),
    "a_loop_that_catches_everything": (
        "import time\nwhile True:\n    try:\n        while True: time.sleep(1)\n    except BaseException: pass",
        ALL,
    ),
    "sleeps_in_the_call": ("def double(x):\n    import time\n    time.sleep(99)", OTHERS),
    "stops_itself": ("def double(x):\n    import os\n    os.kill(os.getpid(), 19)", OTHERS),
    "closes_everything": ("import os\nos.closerange(0, 200)", ALL),
    "closes_everything_in_the_call": ("def double(x):\n    import os\n    os.closerange(0, 200)", OTHERS),
    "reads_null": ("import ctypes\nctypes.string_at(0)", ALL),
    "reads_null_in_the_call": ("def double(x):\n    import ctypes\n    ctypes.string_at(0)", OTHERS),
    "recursion_without_end": (
        "import sys\nsys.setrecursionlimit(10 ** 9)\ndef double(x): return double(x)",
        OTHERS,
    ),
    "namespaces": (
        "import ctypes, os\nlibc = ctypes.CDLL(None)\nif 0 in (libc.unshare(0x10000000), libc.mount(b'a', b'/tmp', b'tmpfs', 0, 0), libc.chroot(b'/tmp')): double = None\ntry: os.setuid(0); double = None\nexcept OSError: pass",
        ALL,
    ),
    "a_time_bomb_at_exit": (
        "import atexit, time\natexit.register(time.sleep, 99)\nclass D:\n    def __del__(s): time.sleep(99)\nd = D()",
        ALL,
    ),
    "an_error_that_cannot_be_printed": (
        "class E(Exception):\n    def __str__(s): raise E\n    __repr__ = __str__\nraise E",
        ALL,
    ),
    "an_error_with_a_surrogate": ("raise Exception('\\ud800\\x00<script>alert(1)</script>')", ALL),
    "an_error_of_a_megabyte": ("raise Exception('x' * 10 ** 6)", ALL),
    "limits_raised": (
        "import resource\ntry: resource.setrlimit(resource.RLIMIT_NPROC, (9999, 9999)); double = None\nexcept (OSError, ValueError): pass",
        ALL,
    ),
    "limits_of_the_parent": (
        "import ctypes\nctypes.CDLL(None).prlimit(1, 0, (ctypes.c_uint64 * 2)(1, 1), None)",
        ALL,
    ),
    "parentheses_without_end": ("x = " + "(" * 5000 + ")" * 5000, ALL),
    "a_null_byte": ("x = 1\x00", ALL),
    "half_a_character": ("x = '\ud800'", ALL),
}

CARELESS = {
    "plain.ipynb": notebook(HONEST),
    "with_all_that_was_released.ipynb": notebook([GIVEN, *HONEST, PUBLIC]),
    "renamed (1).ipynb": notebook(HONEST),
    "byte_order_mark.ipynb": b"\xef\xbb\xbf" + notebook(HONEST),
    "utf_16.ipynb": notebook(HONEST).decode().encode("utf-16"),
    "gbk.py": ("# 我的作业\n" + "\n".join(HONEST)).encode("gbk"),
    "作业一（张三）.ipynb": notebook(HONEST),
    "moved.ipynb": notebook(HONEST[::-1]),
    "duplicated.ipynb": notebook([*HONEST, DOUBLE, *HONEST]),
    "copied_stub_below.ipynb": notebook([*HONEST, STUB]),
    "given_cells_deleted.ipynb": notebook(HONEST),
    "given_cell_copied_below.ipynb": notebook([*HONEST, GIVEN]),
    "checks_changed.ipynb": notebook([*HONEST, 'with check("1", double):\n    assert False']),
    "answer_in_a_text_cell.ipynb": notebook([DOUBLE, ("markdown", TOTAL), ("raw", ANSWER)]),
    "old_format.ipynb": json.dumps(
        {"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code", "input": c} for c in HONEST]}]}
    ).encode(),
    "sources_as_lists.ipynb": json.dumps(
        {"cells": [{"cell_type": "code", "source": c.splitlines(True)} for c in HONEST]}
    ).encode(),
    "from_colab.ipynb": notebook(
        ["from google.colab import drive\ndrive.mount('/content/drive')", *HONEST],
        metadata={"colab": {"provenance": []}},
    ),
    "foreign_kernel.ipynb": notebook(HONEST, metadata={"kernelspec": {"name": "julia-1.9"}}),
    "metadata_of_the_wrong_kind.ipynb": json.dumps(
        {"cells": [{"cell_type": "code", "source": c, "metadata": [1]} for c in HONEST], "metadata": 3}
    ).encode(),
    "pip_and_magic.ipynb": notebook(
        ["!pip install numpy\n%matplotlib inline\nfiles = !ls", "%%time\n" + DOUBLE, TOTAL, ANSWER, "np.sum?"]
    ),
    "exit_at_the_end.ipynb": notebook([*HONEST, "exit()", "import sys; sys.exit(0)", "quit()"]),
    "pictures.ipynb": notebook(["import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()", *HONEST]),
    "a_cell_that_fails.ipynb": notebook(["1 / 0\n" + DOUBLE, TOTAL, ANSWER + "\nundefined"]),
    "a_cell_that_does_not_parse.ipynb": notebook(["def broken(:", *HONEST]),
    "warnings.ipynb": notebook(
        [
            "import warnings",
            DOUBLE.replace("    return", "    warnings.warn('hm')\n    print(x)\n    return"),
            TOTAL,
            ANSWER,
        ]
    ),
    "display.ipynb": notebook(
        [DOUBLE.replace("    return", "    display(x)\n    return"), TOTAL, ANSWER, "display(double(1))"]
    ),
    "asks_for_input.ipynb": notebook([*HONEST, "name = input('?')"]),
    "lists_for_arrays.ipynb": notebook(
        ["def double(x):\n    return (2 * x).tolist()", TOTAL, "answer_3 = [42][0]"]
    ),
    "numpy_numbers.ipynb": notebook(
        [DOUBLE, "def total(x):\n    return np.float32(0) + np.sum(x)", "answer_3 = np.int8(42)"]
    ),
    "number_as_float.ipynb": notebook([DOUBLE, TOTAL, "answer_3 = 42.0"]),
    "other_ways_to_define.ipynb": notebook(
        [
            "double = lambda x: 2 * x",
            "if True:\n    def total(x: list) -> float:\n        return sum(x)",
            "answer_3: int = 42",
        ]
    ),
    "helpers.ipynb": notebook(
        ["def help(x): return 2 * x", "def double(x): return help(x)", TOTAL, "answer_3 = int(double(21))"]
    ),
    "future.ipynb": notebook(
        ["from __future__ import annotations", "def double(x: Unknown):\n    return 2 * x", TOTAL, ANSWER]
    ),
    "script.py": "\n\n".join(HONEST).encode(),
    "script_of_jupyter.py": (
        "#!/usr/bin/env python\n# coding: utf-8\n\n# # 小作业\n"
        + "".join(f"# In[{i}]:\n\n\n{c}\n\n\n" for i, c in enumerate(HONEST))
        + "# In[ ]:\n\n\nget_ipython().system('ls')\n"
    ).encode(),
    "script_with_marks.py": ("# %% [markdown]\n# 文字\n" + "".join(f"# %%\n{c}\n" for c in HONEST)).encode(),
    "windows_lines.py": "\n\n".join(HONEST).replace("\n", "\r\n").encode(),
    "no_suffix_but_json.json": notebook(HONEST),
    "saved_as.ipynb.txt": notebook(HONEST),
    "zipped.zip": zipped(
        {
            "hw/作业.ipynb": notebook(HONEST),
            "__MACOSX/hw/._作业.ipynb": b"\0",
            "hw/.DS_Store": b"\0",
            "hw/data.csv": b"1",
        }
    ),
    "zipped_in_china.zip": gbk_zip("作业.ipynb", notebook(HONEST)),
    "zipped_twice.zip": zipped({"a.zip": zipped({"b.ipynb": notebook(HONEST)})}),
    "folder_of_one/second (2).ipynb": notebook(HONEST),
    "folder_of_one/first (1).ipynb": notebook([DOUBLE]),
    "blank_again/a.ipynb": notebook(HONEST),
    "blank_again/a (1).ipynb": notebook([STUB]),
    "notebook_and_script/work.ipynb": notebook(HONEST),
    "notebook_and_script/helper.py": b"x = 1",
    "damaged_second/a.ipynb": notebook(HONEST),
    "damaged_second/a (1).ipynb": notebook(HONEST)[:100],
}

REJECTED = {
    "empty.ipynb": b"",
    "blank.py": b" \n ",
    "cut_off.ipynb": notebook(HONEST)[:200],
    "web_page.ipynb": b"<!DOCTYPE html><html></html>",
    "text.txt": b"I was ill.",
    "picture.ipynb": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "no_cells.ipynb": b'{"a": 1}',
    "cells_are_a_number.ipynb": b'{"cells": 7}',
    "too_deep.ipynb": b'{"cells": ' + b"[" * 300_000 + b"]" * 300_000 + b"}",
    "too_long_a_number.ipynb": b'{"cells": ' + b"9" * 100_000 + b"}",
    "too_large.ipynb": b" " * ((32 << 20) + 1),
    "not_a_zip.zip": b"PK\x03\x04nothing",
    "nothing_in_it.zip": zipped({"readme.pdf": b"%PDF"}),
    "report.pdf": b"%PDF-1.4",
}
