"""Longer texts than in training: slow down the pairs, each by its own measure, and leave everything else alone.

Every function takes the table of `inverse_frequencies` and returns one of the same shape, radians per token.
`factor` is s = target length / trained length. Chen et al. 2023 (position interpolation), Peng et al. 2023
(NTK-by-parts, YaRN), Ding et al. 2024 (LongRoPE), and the published code where no paper says how.
"""

import math
import numbers

import numpy as np

from companion.frequencies import _base, _exact, _number, _positive, _speeds, inverse_frequencies


def position_interpolation(inv_freq, factor):
    """Return every speed divided by `factor`, shape `(half_dim,)`: the same as dividing the positions.

    θ'_i = θ_i / s. No angle ever leaves the range seen in training, but neighbours come s times closer.

    >>> position_interpolation([1.0, 0.01], 4)
    array([0.25  , 0.0025])

    Raises TypeError or ValueError unless `factor` is a finite number ≥ 1 and `inv_freq` a 1-D table of finite
    speeds ≥ 0. Source: Chen et al. 2023, Eq. 4; `linear` in model configurations.
    """
    return _speeds(inv_freq) / _factor(factor)


def ntk_aware(inv_freq, factor):
    """Return the speeds of a larger base, shape `(half_dim,)`: pair 0 stays, the last one is divided by `factor`.

    b' = b s^(d/(d−2)), which is θ'_i = θ_i s^(−i/(d/2−1)).

    >>> ntk_aware([1.0, 0.1, 0.01], 4)
    array([1.    , 0.05  , 0.0025])

    Raises TypeError or ValueError as `position_interpolation` does, and for a table of one pair only, which
    would have to be first and last at once. Source: Peng et al. 2023 (YaRN), Definition 1.
    """
    inv_freq = _speeds(inv_freq)
    if inv_freq.size == 1:
        raise ValueError(
            "inv_freq must have at least 2 pairs, got 1; the first stays and the last is divided by factor: "
            "use position_interpolation"
        )
    return inv_freq * _factor(factor) ** (-np.arange(inv_freq.size) / (inv_freq.size - 1))


def dynamic_ntk(inv_freq, seq_len, train_len, factor=1.0):
    """Return the NTK-aware speeds for the length at hand, shape `(half_dim,)`; up to `train_len` nothing changes.

    s = 1 + factor · (n/L − 1) for n = `seq_len` > L = `train_len` tokens. A pure function of n: whoever keeps
    rotated keys of another length must turn them anew.

    >>> dynamic_ntk([1.0, 0.1, 0.01], 4096, 2048, factor=2.0).round(6)
    array([1.      , 0.057735, 0.003333])

    Raises TypeError or ValueError as `ntk_aware` does, and unless the lengths are integers ≥ 1.
    Source: Peng et al. 2023 (YaRN), section 3.3; the role of `factor` as in Hugging Face transformers.
    """
    stretch = max(1.0, _length("seq_len", seq_len) / _length("train_len", train_len))
    return ntk_aware(inv_freq, 1 + _factor(factor) * (stretch - 1))


def ntk_by_parts(inv_freq, factor, train_len, *, alpha=1.0, beta=32.0):
    """Return speeds kept for fast pairs, divided by `factor` for slow ones, shape `(half_dim,)`: the paper's ramp.

    r_i = L θ_i / 2π turns within `train_len` = L tokens; γ_i rises linearly in r from 0 at α to 1 at β, and
    θ'_i = (1 − γ_i) θ_i / s + γ_i θ_i. With α = β the ramp is a step.

    >>> ntk_by_parts([1.0, 0.01, 0.0001], 4, 8192).round(6)
    array([1.000e+00, 5.412e-03, 2.500e-05])

    Raises TypeError or ValueError as `position_interpolation` does, and unless `train_len` is an integer ≥ 1
    and 0 ≤ `alpha` ≤ `beta`. Source: Peng et al. 2023 (YaRN), Eq. 17-18 and Definition 2.
    """
    turns = _length("train_len", train_len) * _speeds(inv_freq) / (2 * np.pi)
    alpha, beta = _ordered("alpha", alpha, "beta", beta)
    kept = np.clip((turns - alpha) / (beta - alpha), 0, 1) if beta > alpha else (turns >= beta).astype(float)
    return _blend(inv_freq, factor, kept)


def yarn(inv_freq, factor, train_len, *, base=10000.0, beta_fast=32.0, beta_slow=1.0, truncate=True):
    """Return the speeds of YaRN, shape `(half_dim,)`, with the ramp of its published code, linear in the pair index.

    Pair number d ln(L / 2πr) / (2 ln b) makes r turns within L = `train_len` tokens. The ramp runs from the
    pair with `beta_fast` turns (kept) to the one with `beta_slow` (divided by `factor`), rounded outwards to
    whole pairs if `truncate`. For Llama 2 at s = 8 some pairs turn more than twice as fast as with the paper's
    `ntk_by_parts`. The second half of YaRN is `yarn_attention_factor`.

    >>> yarn(inverse_frequencies(8), 4, 4096).round(6)
    array([1.00e+00, 1.00e-01, 6.25e-03, 2.50e-04])

    Raises TypeError or ValueError as `ntk_by_parts` does, with 0 < `beta_slow` ≤ `beta_fast`, and unless
    `inv_freq` is the table of `base`. Source: `yarn_find_correction_range` in the authors' repository
    jquesnelle/yarn, and model configurations with `rope_type` yarn.
    """
    inv_freq, base = _speeds(inv_freq), _base(base)
    _is_table_of(base, inv_freq)
    low, high = _ramp_ends(2 * inv_freq.size, base, train_len, beta_fast, beta_slow, truncate)
    return _blend(inv_freq, factor, 1 - np.clip((np.arange(inv_freq.size) - low) / (high - low), 0, 1))


def llama3(inv_freq, factor, train_len, *, low_freq_factor=1.0, high_freq_factor=4.0):
    """Return the speeds of Llama 3.1 and later, shape `(half_dim,)`: NTK-by-parts in other words.

    A wavelength below L / `high_freq_factor` is kept, one above L / `low_freq_factor` is stretched by
    `factor`, in between speeds are blended. Since r = L / λ, that is `ntk_by_parts` with α = `low_freq_factor`
    and β = `high_freq_factor`.

    >>> llama3([1.0, 0.002, 0.0001], 8, 8192).round(7)
    array([1.0000e+00, 1.1878e-03, 1.2500e-05])

    Raises TypeError or ValueError as `ntk_by_parts` does. Source: `apply_scaling` in meta-llama/llama-models.
    """
    low, high = _ordered("low_freq_factor", low_freq_factor, "high_freq_factor", high_freq_factor)
    return ntk_by_parts(inv_freq, factor, train_len, alpha=low, beta=high)


def longrope(inv_freq, short_factor, long_factor, seq_len, train_len):
    """Return every speed divided by its own factor, shape `(half_dim,)`, found by a search over many models.

    θ'_i = θ_i / λ_i, with λ from `short_factor` up to `train_len` tokens (inclusive) and from `long_factor`
    beyond. When a text grows past `train_len`, cached keys have to be turned anew.

    >>> longrope([1.0, 0.01], [1.0, 2.0], [1.0, 32.0], 4097, 4096)
    array([1.000e+00, 3.125e-04])

    Raises TypeError or ValueError unless both lists have one finite number > 0 for each pair and the lengths
    are integers ≥ 1. Source: Ding et al. 2024 (LongRoPE), section 3; the switch as in microsoft/LongRoPE.
    """
    inv_freq = _speeds(inv_freq)
    short = _factors("short_factor", short_factor, inv_freq.size)
    long = _factors("long_factor", long_factor, inv_freq.size)
    return inv_freq / (short if _length("seq_len", seq_len) <= _length("train_len", train_len) else long)


def proportional(head_dim, fraction, base=10000.0):
    """Return the table of p-RoPE, shape `(head_dim / 2,)`: the fastest pairs turn as always, the others not at all.

    The first ⌊fraction · d / 2⌋ speeds are those of the whole head, then come zeros. With 1 it is RoPE, with 0
    no position at all. Partial rotary differs: there the exponents and pairs span the turned dimensions only.

    >>> proportional(8, 0.5)
    array([1. , 0.1, 0. , 0. ])

    Raises TypeError or ValueError unless `fraction` lies in 0 … 1; else as `inverse_frequencies`.
    Source: Barbero et al. 2024 (p-RoPE); `proportional` in model configurations.
    """
    inv_freq = inverse_frequencies(head_dim, base)
    if not 0 <= _number("fraction", fraction) <= 1:
        raise ValueError(
            f"fraction must be between 0 and 1, got {fraction!r}; 0.25 turns a quarter of the pairs"
        )
    inv_freq[int(fraction * head_dim // 2) :] = 0
    return inv_freq


def yarn_attention_factor(factor, *, mscale=None, mscale_all_dim=None):
    """Return what YaRN multiplies cos and sin by, one float (shape `()`); the scores get its square.

    0.1 ln s + 1, which the paper calls √(1/t). If both `mscale` and `mscale_all_dim` are given and not 0, it is
    (0.1 mscale ln s + 1) / (0.1 mscale_all_dim ln s + 1), as DeepSeek's configurations ask.

    >>> round(yarn_attention_factor(8), 4)
    1.2079

    Raises TypeError or ValueError unless `factor` is a finite number ≥ 1 and the others, if given, are ≥ 0.
    Source: Peng et al. 2023 (YaRN), Eq. 21-22; `yarn_get_mscale` in the code of DeepSeek-V2.
    """
    over, under = _weight("mscale", mscale), _weight("mscale_all_dim", mscale_all_dim)
    return _magnitude(factor, over) / _magnitude(factor, under) if over and under else _magnitude(factor, 1.0)


def longrope_attention_factor(factor, train_len):
    """Return what LongRoPE multiplies cos and sin by, one float (shape `()`), for short and long texts alike.

    √(1 + ln s / ln L) with s = `factor` and L = `train_len` tokens.

    >>> round(longrope_attention_factor(32, 4096), 7)
    1.1902381

    Raises TypeError or ValueError unless `factor` is a finite number ≥ 1 and `train_len` an integer ≥ 2.
    Source: the code of Phi-3; microsoft/LongRoPE.
    """
    return math.sqrt(1 + math.log(_factor(factor)) / math.log(_length("train_len", train_len, least=2)))


def _blend(inv_freq, factor, kept):
    """The weighted mean of the speed as it is (weight 1: kept) and divided by the factor (weight 0)."""
    inv_freq = _speeds(inv_freq)
    return (1 - kept) * inv_freq / _factor(factor) + kept * inv_freq


def _ramp_ends(dim, base, train_len, beta_fast, beta_slow, truncate):
    # To the letter as published, with the odd bound dim - 1 where the last pair is dim / 2 - 1: checkpoints
    # were trained with it.
    train_len = _length("train_len", train_len)
    beta_slow, beta_fast = _ordered("beta_slow", beta_slow, "beta_fast", beta_fast)
    if not isinstance(truncate, bool | np.bool_):
        raise TypeError(f"truncate must be True or False, got {truncate!r}; pass a bool")
    low, high = (
        dim * math.log(train_len / (2 * math.pi * _positive(name, turns))) / (2 * math.log(base))
        for name, turns in [("beta_fast", beta_fast), ("beta_slow", beta_slow)]
    )
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    return low, high + 0.001 if low == high else high


def _magnitude(factor, weight):
    return 0.1 * weight * math.log(_factor(factor)) + 1


def _weight(name, value):
    number = 0.0 if value is None else _number(name, value)
    if number < 0:
        raise ValueError(f"{name} must be at least 0, got {value!r}; leave it out for the usual value")
    return number


def _factor(value):
    factor = _number("factor", value)
    if factor < 1:
        raise ValueError(f"factor must be at least 1, got {value!r}; it is target length / trained length")
    return factor


def _length(name, value, *, least=1, of="tokens"):
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}; give the number of {of}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}; give the number of {of}")
    return int(value)


def _ordered(low_name, low, high_name, high):
    low, high = _number(low_name, low), _number(high_name, high)
    if not 0 <= low <= high:
        raise ValueError(
            f"{low_name} and {high_name} must be 0 ≤ {low_name} ≤ {high_name}, got {low} and {high}; "
            "they count turns within the trained length"
        )
    return low, high


def _factors(name, values, size):
    factors = _exact(name, values)
    if factors.shape != (size,):
        raise ValueError(
            f"{name} must have one number for each of the {size} pairs, got shape {factors.shape}; "
            "the list belongs to a head of another size"
        )
    if factors.min() <= 0:
        raise ValueError(f"{name} must be greater than 0, got {factors.min()}; 1.0 keeps a pair as it is")
    return factors


def _is_table_of(base, inv_freq):
    # Another base would put the ramp elsewhere, and the numbers would still look right.
    if not np.allclose(inv_freq, inverse_frequencies(2 * inv_freq.size, base), rtol=1e-6, atol=0):
        raise ValueError(
            f"base must be the one that inv_freq was made with, got {base}; pass base=… to yarn as well"
        )
