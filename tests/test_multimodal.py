"""Theorems about positions of text, images and video."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.frequencies import inverse_frequencies, rotation_angles
from companion.multimodal import mrope_angles, mrope_axes, mrope_position_ids

both_layouts = pytest.mark.parametrize("layout", ["contiguous", "interleaved"])
counts = st.integers(0, 20)
sizes = st.integers(1, 4)
texts = st.tuples(st.just("text"), st.integers(0, 5))
images = st.tuples(st.just("image"), st.tuples(sizes, sizes))
videos = st.tuples(st.just("video"), st.tuples(sizes, sizes, sizes))
sequences = st.lists(st.one_of(texts, images, videos), max_size=6)


def layout_of(case):
    return case["name"].split()[1].removesuffix("-MRoPE")


def tokens(segment):
    return int(np.prod(segment[1]))


# Axes


def test_axes_equal_the_goldens(goldens):
    for case in goldens["mrope"]:
        axes = mrope_axes(case["head_dim"] // 2, case["mrope_section"], layout=layout_of(case))
        assert "".join("THW"[axis] for axis in axes) == case["axis_of_frequency"], case["name"]


@given(counts, counts, counts)
def test_contiguous_axes_come_one_after_the_other(t, h, w):
    if t + h + w == 0:
        return
    axes = mrope_axes(t + h + w, (t, h, w), layout="contiguous")
    assert axes.tolist() == [0] * t + [1] * h + [2] * w


@given(counts, counts, counts)
def test_interleaved_axes_take_turns_and_keep_the_number_of_each(more, h, w):
    t = 2 * max(h, w) - min(h, w) + more
    if t + h + w == 0:
        return
    axes = mrope_axes(t + h + w, (t, h, w), layout="interleaved")
    assert np.bincount(axes, minlength=3).tolist() == [t, h, w]
    assert axes[1 : 3 * h : 3].tolist() == [1] * h and axes[2 : 3 * w : 3].tolist() == [2] * w


# Angles


def test_cosines_equal_the_goldens(goldens):
    seven_digits = 2e-7  # printed with 7 digits, computed by the peer in float32
    for case in goldens["mrope"]:
        inv_freq = inverse_frequencies(case["head_dim"], case["rope_theta"])
        angles = mrope_angles(
            case["position_ids_thw"], inv_freq, case["mrope_section"], layout=layout_of(case)
        )
        np.testing.assert_allclose(np.cos(angles), case["peer_cos_first_half"], rtol=0, atol=seven_digits)


@both_layouts
@given(positions=st.lists(st.integers(-1000, 10**5), min_size=1, max_size=6))
def test_text_turns_as_with_ordinary_rope(layout, positions):
    inv_freq = inverse_frequencies(128)
    angles = mrope_angles([positions] * 3, inv_freq, (24, 20, 20), layout=layout)
    np.testing.assert_array_equal(angles, rotation_angles(positions, inv_freq))


@both_layouts
@given(data=st.data())
def test_each_pair_reads_the_position_of_its_axis(layout, data):
    ids = np.array(
        data.draw(st.lists(st.lists(st.integers(0, 999), min_size=4, max_size=4), min_size=3, max_size=3))
    )
    inv_freq, sections = inverse_frequencies(16), (4, 2, 2)
    angles = mrope_angles(ids, inv_freq, sections, layout=layout)
    axes = mrope_axes(8, sections, layout=layout)
    for token, pair in np.ndindex(4, 8):
        assert angles[token, pair] == ids[axes[pair], token] * inv_freq[pair]


def test_a_batch_of_positions_gives_a_batch_of_angles():
    ids = np.arange(3 * 2 * 5).reshape(3, 2, 5)
    inv_freq = inverse_frequencies(8)
    angles = mrope_angles(ids, inv_freq, (2, 1, 1), layout="contiguous")
    assert angles.shape == (2, 5, 4)
    np.testing.assert_array_equal(
        angles[1], mrope_angles(ids[:, 1], inv_freq, (2, 1, 1), layout="contiguous")
    )


# Position ids


def test_position_ids_equal_the_goldens(goldens):
    """They follow the papers' rule, also where the peer does not."""
    for case in goldens["mrope_position_ids"]:
        merge = case["spatial_merge_size"]
        merged = {
            "text": lambda n: n,
            "image": lambda t, h, w, merge=merge: (h // merge, w // merge),
            "video": lambda t, h, w, merge=merge: (t, h // merge, w // merge),
        }
        ids = mrope_position_ids([(kind, merged[kind](*size)) for kind, *size in case["segments"]])
        np.testing.assert_array_equal(ids, case["paper_rule_position_ids_thw"], err_msg=str(case["segments"]))
        assert ids.max() + 1 - ids.shape[1] == case["paper_rule_delta"]


@given(sequences)
def test_every_segment_starts_one_past_the_largest_position_before_it_on_any_axis(segments):
    ids = mrope_position_ids(segments)
    assert ids.dtype == np.int64 and ids.shape == (3, sum(map(tokens, segments)))
    begin, largest = 0, -1
    for segment in segments:
        block = ids[:, begin : begin + tokens(segment)]
        if block.size:
            assert (block[:, 0] == largest + 1).all()
            largest = block.max()
        begin += tokens(segment)


@given(st.integers(0, 50))
def test_text_counts_on_on_all_axes(n):
    np.testing.assert_array_equal(mrope_position_ids([("text", n)]), [np.arange(n)] * 3)


@given(sizes, sizes, sizes)
def test_an_image_has_one_time_its_rows_and_its_columns(text, h, w):
    ids = mrope_position_ids([("text", text), ("image", (h, w))])[:, text:] - text
    assert ids.T.tolist() == [[0, row, column] for row in range(h) for column in range(w)]


@given(sizes, sizes, sizes, st.sampled_from([0.4, 0.5, 1, 1.5, 2, 25]))
def test_frames_of_a_video_come_at_the_rounded_down_multiple_of_the_interval(t, h, w, interval):
    ids = mrope_position_ids([("text", 2), ("video", (t, h, w))], frame_interval=interval)[:, 2:] - 2
    expected = [
        [int(frame * interval), row, column] for frame in range(t) for row in range(h) for column in range(w)
    ]
    assert ids.T.tolist() == expected


def test_the_interval_of_frames_leaves_images_alone():
    segments = [("image", (2, 3)), ("text", 1)]
    np.testing.assert_array_equal(
        mrope_position_ids(segments, frame_interval=25), mrope_position_ids(segments)
    )


def test_a_long_video_pushes_the_text_behind_it_past_its_last_frame():
    ids = mrope_position_ids([("video", (3, 1, 2)), ("text", 1)], frame_interval=10)
    assert ids[:, -1].tolist() == [21, 21, 21]


def test_no_segments_have_no_positions():
    assert mrope_position_ids([]).shape == (3, 0)
