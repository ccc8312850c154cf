"""Positions of text, images and video in one sequence: three numbers a token, shared out among the rotary pairs.

Wang et al. 2024 (Qwen2-VL), section 2.1 (M-RoPE), and Bai et al. 2025 (Qwen3-VL) for the interleaved layout.
The axes are T (time), H (row) and W (column), in this order. Text has the same number on all three, and so turns
as with ordinary RoPE.
"""

import math

import numpy as np

from companion.frequencies import _array, _exact, _positive, _speeds
from companion.frequency_scaling import _length


def mrope_axes(half_dim, sections, *, layout):
    """Return which axis drives each pair, 0 for T, 1 for H, 2 for W, integers of shape `(half_dim,)`.

    `sections` are the numbers of pairs of T, H and W. `layout` is `"contiguous"` (Qwen2-VL: TT… HH… WW…, so
    that time has the fast pairs and columns the slow ones) or `"interleaved"` (Qwen3-VL: THWTHW… as long as H
    and W last, then T). It has nothing to do with the pairing of dimensions.

    >>> mrope_axes(6, (2, 2, 2), layout="contiguous")
    array([0, 0, 1, 1, 2, 2])
    >>> mrope_axes(8, (4, 2, 2), layout="interleaved")
    array([0, 1, 2, 0, 1, 2, 0, 0])

    Raises TypeError or ValueError unless `sections` are three integers ≥ 0 with the sum `half_dim`, of which,
    interleaved, H and W find a place for all, and for another layout.
    Source: Qwen2-VL, section 2.1; `apply_interleaved_mrope` in Hugging Face transformers for Qwen3-VL.
    """
    sections = _sections("sections", sections, _length("half_dim", half_dim, of="pairs"))
    if not isinstance(layout, str) or layout not in ("contiguous", "interleaved"):
        raise ValueError(
            f"layout must be 'contiguous' or 'interleaved', got {layout!r}; contiguous is Qwen2-VL, "
            "interleaved is Qwen3-VL"
        )
    if layout == "contiguous":
        return np.repeat(np.arange(3), sections)
    axes = np.zeros(half_dim, dtype=np.intp)
    for axis in (1, 2):
        axes[axis : 3 * sections[axis] : 3] = axis
    if (np.bincount(axes, minlength=3) != sections).any():
        raise ValueError(
            f"sections must have room for H at 1, 4, … and W at 2, 5, … of {half_dim} pairs, got {sections}; "
            "give T more of them, or use layout='contiguous'"
        )
    return axes


def mrope_angles(position_ids, inv_freq, sections, *, layout):
    """Return the angle of every pair of every token, radians, shape `(*batch, seq_len, half_dim)`.

    `position_ids` has the shape `(3, *batch, seq_len)`: pair i turns by θ_i times the position on its axis.
    Take cos and sin of the result as the table of `apply_rope`.

    >>> mrope_angles([[5], [7], [9]], [1.0, 0.1, 0.01], (1, 1, 1), layout="contiguous")
    array([[5.  , 0.7 , 0.09]])

    Raises TypeError or ValueError for positions that `rotation_angles` would refuse or that do not have three
    axes; else as `mrope_axes`. Source: Qwen2-VL, section 2.1.
    """
    position_ids, inv_freq = _exact("position_ids", position_ids), _speeds(inv_freq)
    if position_ids.ndim < 2 or position_ids.shape[0] != 3:
        raise ValueError(
            f"position_ids must have the shape (3, *batch, seq_len), got {position_ids.shape}; "
            "for text alone use np.stack([positions] * 3)"
        )
    axes = mrope_axes(inv_freq.size, sections, layout=layout)
    return np.moveaxis(position_ids, 0, -1)[..., axes] * inv_freq


def mrope_position_ids(segments, *, frame_interval=1):
    """Return the positions of a sequence on the three axes, int64 of shape `(3, total)`.

    Segments are `("text", n)`, `("image", (h, w))` and `("video", (t, h, w))`, counted in tokens after the
    vision encoder has merged patches. Each begins one past the largest position before it, on any axis.
    Text counts on; an image has one T, its rows on H and columns on W; frame number t of a video has T at
    ⌊t · frame_interval⌋ (Qwen2.5-VL: tokens per second × seconds per frame).

    >>> mrope_position_ids([("text", 2), ("image", (2, 2)), ("text", 1)])
    array([[0, 1, 2, 2, 2, 2, 4],
           [0, 1, 2, 2, 3, 3, 4],
           [0, 1, 2, 3, 2, 3, 4]])

    Raises TypeError or ValueError for another kind of segment, a size that is not as above, and unless
    `frame_interval` is finite and > 0. Source: Qwen2-VL, section 2.1; the Qwen2.5-VL report for frame times.
    """
    frame_interval = _positive("frame_interval", frame_interval)
    blocks, start = [np.empty((3, 0), dtype=np.int64)], 0
    for segment in segments:
        block = start + _segment_ids(segment, frame_interval)
        blocks.append(block)
        start = block.max(initial=start - 1) + 1
    return np.concatenate(blocks, axis=1)


def _segment_ids(segment, frame_interval):
    """The positions of one segment, from 0."""
    kind, sizes = _kind_and_sizes(segment)
    if kind == "text":
        return np.tile(np.arange(sizes[0]), (3, 1))
    ids = np.indices((1,) * (3 - len(sizes)) + sizes).reshape(3, -1)
    if kind == "video":
        ids[0] = [math.floor(frame * frame_interval) for frame in ids[0].tolist()]
    return ids


def _kind_and_sizes(segment):
    axes = {"text": "n", "image": "hw", "video": "thw"}
    if not isinstance(segment, tuple | list) or len(segment) != 2 or segment[0] not in tuple(axes):
        raise ValueError(
            f"segments must be ('text', n), ('image', (h, w)) or ('video', (t, h, w)), got {segment!r}; "
            "write each as such a pair"
        )
    kind, sizes = segment
    sizes = tuple(sizes) if isinstance(sizes, tuple | list) else (sizes,)
    if len(sizes) != len(axes[kind]):
        raise ValueError(
            f"the size of {kind!r} must have {len(axes[kind])} numbers ({', '.join(axes[kind])}), "
            f"got {segment[1]!r}; count them on the merged grid"
        )
    least = 0 if kind == "text" else 1
    return kind, tuple(_length(f"the size of {kind!r}", size, least=least) for size in sizes)


def _sections(name, value, half_dim):
    sections = _array(name, value, kinds="iu", rule="three integers")
    if sections.shape != (3,) or sections.min() < 0 or sections.sum() != half_dim:
        raise ValueError(
            f"{name} must be three integers ≥ 0 with the sum {half_dim} (the pairs), got {sections.tolist()}; "
            "they count the pairs of T, H and W, not the dimensions"
        )
    return tuple(sections.tolist())
