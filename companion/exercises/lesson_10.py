"""Checks of lesson 10, kernels. Each returns None, or what is wrong as a pair (Chinese, English)."""

import numpy as np

from companion.exercises.kernel_check import check_kernel, show_puzzle
from companion.exercises.kernel_puzzles import PUZZLES


def show(number):
    """Print the puzzle of an exercise, such as "10.5": the definition in torch, and how the kernel is launched."""
    if number not in PUZZLES:
        raise ValueError(f"number must be one of {', '.join(PUZZLES)}, got {number!r}; take one of them")
    show_puzzle(PUZZLES[number])


def exercise_1(answer):
    """Programs and idle lanes for 1000 rows in blocks of 64."""
    got = np.asarray(answer, dtype=float)
    if got.shape != (2,):
        return "要两个数：(程序数, 空闲的行数)", "two numbers are wanted: (programs, idle rows)"
    programs, idle = got
    if programs == 15:
        return "15 个程序只够 960 行，剩下的 40 行没有人管", "15 programs cover 960 rows; 40 are left over"
    if programs != 16:
        return "程序数不对：1000 除以 64，向上取整", "wrong number of programs: 1000 over 64, rounded up"
    if idle == 40:
        return (
            "最后一个程序有 40 行要做，题目问的是没事做的",
            "40 rows have work in the last program; the idle ones are asked for",
        )
    if idle != 24:
        return "空闲的行数不对：16 × 64 − 1000", "wrong number of idle rows: 16 × 64 − 1000"
    return None


def exercise_2(kernel):
    """Copy whole blocks."""
    return check_kernel(kernel, PUZZLES["10.2"])


def exercise_3(kernel):
    """Copy a vector of any length."""
    return check_kernel(kernel, PUZZLES["10.3"])


def exercise_4(kernel):
    """Copy a matrix of any strides."""
    return check_kernel(kernel, PUZZLES["10.4"])


def exercise_5(kernel):
    """RoPE, half pairing."""
    return check_kernel(kernel, PUZZLES["10.5"])


def exercise_6(kernel):
    """RoPE, adjacent pairing."""
    return check_kernel(kernel, PUZZLES["10.6"])


def exercise_7(kernel):
    """RoPE with its gradient."""
    return check_kernel(kernel, PUZZLES["10.7"])


def exercise_8(kernel):
    """RoPE in place."""
    return check_kernel(kernel, PUZZLES["10.8"])


def exercise_9(kernel):
    """RoPE of q and k in one launch."""
    return check_kernel(kernel, PUZZLES["10.9"])


def exercise_10(kernel):
    """A softmax in one pass."""
    return check_kernel(kernel, PUZZLES["10.10"])


def exercise_11(kernel):
    """Attention with ALiBi."""
    return check_kernel(kernel, PUZZLES["10.11"])


def exercise_12(kernel):
    """Attention with RoPE."""
    return check_kernel(kernel, PUZZLES["10.12"])
