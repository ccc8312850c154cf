"""The interactive figure of the lesson on relative positions: the staircase of T5's buckets."""

import numpy as np

from companion.figures import _figure, _whole
from companion.relative_bias import t5_buckets


def bucket_staircase(lang, *, num_buckets=32, max_distance=128, reach=140, query=60, key=52):
    """Return the figure in which a query and a key can be moved and their bucket is looked up.

    Two sliders place the query and the key at 0 … `reach`; a switch chooses the buckets of an encoder (both sides)
    or of a decoder (the past only). The staircase shows the bucket of every offset key − query, the strip below
    it all buckets: the one in use is filled, and one that no offset leads to is crossed out.
    """
    words = {
        "zh": {
            "alt": "阶梯图：横轴是相对距离 n − m，纵轴是桶的编号；下面一排方格是全部的桶",
            "query": "查询的位置 m",
            "key": "键的位置 n",
            "kind": "分桶方式",
            "kinds": ["编码器（双向）", "解码器（只看过去）"],
            "strip": "全部 {count} 个桶，× 表示没有距离通向它",
            "strip_full": "全部 {count} 个桶",
            "status": "相对距离 n − m = {n} − {m} = {offset}，{bucket} 号桶。\n{members}\n{reachable}",
            "one": "这一桶只装这一个距离。",
            "some": "这一桶装着 {first} 到 {last}，共 {size} 个距离。",
            "below": "这一桶装着 {last} 和更远的一切过去。",
            "above": "这一桶装着 {first} 和更远的一切将来。",
            "future": "这一桶装着 0 和一切将来；将来的键会被因果掩码遮住。",
            "all": "{count} 个桶都有距离用到。",
            "missing": "有距离用到的桶有 {used} 个，{missing} 号桶没有。",
        },
        "en": {
            "alt": "Staircase: across, the offset n − m; up, the number of the bucket. The cells below are all the buckets",
            "query": "position of the query, m",
            "key": "position of the key, n",
            "kind": "buckets of",
            "kinds": ["an encoder (both sides)", "a decoder (the past only)"],
            "strip": "all {count} buckets; × marks one that no offset leads to",
            "strip_full": "all {count} buckets",
            "status": "Offset n − m = {n} − {m} = {offset}, bucket {bucket}.\n{members}\n{reachable}",
            "one": "This bucket holds this one offset.",
            "some": "This bucket holds {first} to {last}, {size} offsets.",
            "below": "This bucket holds {last} and all of the past beyond.",
            "above": "This bucket holds {first} and all of the future beyond.",
            "future": "This bucket holds 0 and all of the future; a causal mask hides future keys.",
            "all": "All {count} buckets are used by some offset.",
            "missing": "{used} buckets are used by some offset; bucket {missing} is not.",
        },
    }
    reach, query, key = _whole("reach", reach, least=1), _whole("query", query), _whole("key", key)
    num_buckets = _whole("num_buckets", num_buckets, least=1)
    if not (0 <= query <= reach and 0 <= key <= reach):
        raise ValueError(f"query and key must lie in 0 … {reach}, got {query} and {key}; raise reach")
    offsets = np.arange(-reach, reach + 1)
    buckets = [
        t5_buckets(offsets, num_buckets=num_buckets, max_distance=max_distance, bidirectional=both).tolist()
        for both in (True, False)
    ]
    return _figure(
        "bucket_staircase", lang, words, buckets=buckets, count=num_buckets, reach=reach, start=[query, key]
    )
