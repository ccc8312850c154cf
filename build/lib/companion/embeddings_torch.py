"""Positions as weights or tables of a model: learned vectors, sinusoids, and the bias of T5.

Devlin et al. 2019 (BERT) for learned vectors; Vaswani et al. 2017, section 3.5; Raffel et al. 2020 (T5). The
first two are added to the word embeddings, the last to the scores. What is about positions comes from NumPy.
"""

import math

import numpy as np
import torch
from torch.nn.functional import embedding

from companion.attention_torch import _offsets
from companion.frequency_scaling import _length
from companion.relative_bias import t5_buckets
from companion.sinusoidal import sinusoidal_table
from companion.tables_torch import PositionTable, _kind, table_rows


class LearnedPositions(torch.nn.Module):
    """Add a learned vector to each embedding: one for each of `max_positions` positions, and none beyond.

    `weight` is `(max_positions, d_model)`, drawn from N(0, 0.02²).

    >>> add_positions = LearnedPositions(max_positions=16, d_model=4)
    >>> add_positions(torch.zeros(2, 3, 4), torch.arange(3)).shape
    torch.Size([2, 3, 4])

    Raises TypeError or ValueError unless both numbers are integers ≥ 1. Source: Devlin et al. 2019 (BERT),
    section 3, and its code for the initial values.
    """

    def __init__(self, max_positions, d_model):
        super().__init__()
        shape = _length("max_positions", max_positions), _length("d_model", d_model, of="dimensions")
        self.weight = torch.nn.Parameter(torch.empty(shape))
        self.reset_parameters()

    def reset_parameters(self):
        """Draw the vectors anew."""
        torch.nn.init.normal_(self.weight, std=0.02)

    def forward(self, embeddings, positions):
        """Return the sums, in the shape `(*batch, seq_len, d_model)` and the dtype of the embeddings.

        Positions are `(seq_len,)`, or `(*batch, seq_len)` for left padding. Raises TypeError if they are not
        integers, ValueError outside 0 … max_positions − 1 or if the shapes do not fit.
        """
        _check_embeddings(embeddings, positions, self.weight.shape[-1])
        return (embeddings + table_rows(self.weight, positions)).to(embeddings.dtype)


class SinusoidalPositions(PositionTable):
    """Add the sinusoidal code to each embedding, which is multiplied by √d_model first, as in the paper.

    The code is float32 whatever the module is cast to, and only the sum is rounded to the dtype of the
    embeddings. See `companion.sinusoidal.sinusoidal_table` for `base` and `layout`.

    >>> add_positions = SinusoidalPositions(max_positions=16, d_model=4)
    >>> add_positions(torch.ones(2, 4), torch.tensor([0, 1]))
    tensor([[2.0000, 3.0000, 2.0000, 3.0000],
            [2.8415, 2.5403, 2.0100, 2.9999]])

    Raises TypeError or ValueError as `sinusoidal_table` does, and unless `max_positions` is an integer ≥ 1.
    Source: Vaswani et al. 2017, section 3.5, and section 3.4 for the scale.
    """

    def __init__(self, max_positions, d_model, base=10000.0, *, layout="adjacent"):
        positions = np.arange(_length("max_positions", max_positions))
        super().__init__(sinusoidal_table(positions, d_model, base, layout=layout).astype(np.float32))

    def forward(self, embeddings, positions):
        """Return √d_model · embeddings + code; arguments, shapes and errors are those of LearnedPositions."""
        d_model = self.table.shape[-1]
        _check_embeddings(embeddings, positions, d_model)
        code = super().forward(positions)
        return torch.add(code, embeddings.to(code.dtype), alpha=math.sqrt(d_model)).to(embeddings.dtype)


class T5Bias(PositionTable):
    """The bias of T5: one learned number for each head and bucket of distances. Give all layers the same one.

    `weight` is `(num_buckets, num_heads)`, drawn from N(0, 0.02²); the buckets are those of
    `companion.relative_bias.t5_buckets`. Decoders take `bidirectional=False`. T5 itself does not divide its
    scores by √head_dim: use it with `attention(…, scale=1.0)`.

    >>> bias = T5Bias(num_heads=8)
    >>> bias(torch.arange(3), torch.arange(5)).shape
    torch.Size([8, 3, 5])

    Raises TypeError or ValueError as `t5_buckets` does, and unless `num_heads` is an integer ≥ 1.
    Source: Raffel et al. 2020 (T5), section 2.1.
    """

    def __init__(self, num_heads, *, num_buckets=32, max_distance=128, bidirectional=True):
        num_heads = _length("num_heads", num_heads, of="heads")
        farthest = _length("max_distance", max_distance)
        offsets = np.arange(-farthest, farthest + 1)  # what is farther shares a bucket with the last
        options = {"num_buckets": num_buckets, "max_distance": max_distance, "bidirectional": bidirectional}
        super().__init__(t5_buckets(offsets, **options))
        self.weight = torch.nn.Parameter(torch.empty(num_buckets, num_heads))
        self.reset_parameters()

    def reset_parameters(self):
        """Draw the numbers anew."""
        torch.nn.init.normal_(self.weight, std=0.02)

    def forward(self, query_positions, key_positions):
        """Return the bias for `attention`, `(num_heads, query_len, key_len)`.

        Positions are `(seq_len,)`; for `(batch, 1, seq_len)`, as left padding needs, the bias is
        `(batch, num_heads, query_len, key_len)`. Raises TypeError or ValueError as `causal_mask` does.
        """
        farthest = len(self.table) // 2
        offsets = _offsets(query_positions, key_positions)
        if offsets.ndim > 2 and offsets.shape[-3] != 1:
            raise ValueError(
                f"positions must be (seq_len,) or (batch, 1, seq_len), got {tuple(query_positions.shape)}; "
                "the 1 stands for the heads"
            )
        buckets = self.table[offsets.clamp(-farthest, farthest) + farthest]
        bias = embedding(buckets, self.weight).movedim(-1, -3)
        return bias.squeeze(-4) if offsets.ndim > 2 else bias


def _check_embeddings(embeddings, positions, d_model):
    if not isinstance(embeddings, torch.Tensor) or not embeddings.is_floating_point():
        raise TypeError(f"embeddings must be a floating-point tensor, got {_kind(embeddings)}; convert them")
    shape = embeddings.shape
    if len(shape) < 2 or shape[-1] != d_model:
        raise ValueError(
            f"embeddings must have the axes (*batch, seq_len, {d_model}), got {tuple(shape)}; "
            "d_model is set when the module is made"
        )
    if isinstance(positions, torch.Tensor) and positions.shape not in (shape[:-1], shape[-2:-1]):
        raise ValueError(
            f"positions must be one a token, {tuple(shape[-2:-1])} or {tuple(shape[:-1])}, "
            f"got {tuple(positions.shape)}; use torch.arange(seq_len)"
        )
