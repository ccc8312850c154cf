"""Tables about positions inside torch modules: made by NumPy, spoilt by no cast and no move, never overrun.

NumPy has them in float64 (`companion.rope`, `companion.sinusoidal`, `companion.relative_bias`); here they are
rounded once. Positions are integer tensors, for half precision cannot hold them: 257 is 256 in bfloat16.
"""

import torch


class PositionTable(torch.nn.Module):
    """A table with one row for each of the positions 0, 1, 2 …, called on positions of shape `(*shape,)`.

    The buffer has the dtype of the NumPy array, whatever the module is cast to, and is not saved. It is made
    anew with every cast and move: `.half()` would round it, and `to_empty()`, after an initialisation on the
    meta device, would leave it unwritten.

    >>> squares = PositionTable([0, 1, 4, 9]).half()
    >>> squares(torch.tensor([3, 0]))
    tensor([9, 0])

    Raises TypeError or ValueError as `table_rows` does. Source: the same fault in many libraries, for example
    huggingface/transformers #25681 and #29285, where a cast rounded the frequencies.
    """

    def __init__(self, table):
        super().__init__()
        self._numpy_table = table
        self.register_buffer("table", self._made(device=None), persistent=False)

    def forward(self, positions):
        """Return the rows at these positions, of shape `(*positions.shape, *row)`."""
        return table_rows(self.table, positions)

    def _made(self, device):
        return torch.tensor(self._numpy_table, device=device)

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.table = self._made(self.table.device)
        return self


def table_rows(table, positions):
    """Return `table[positions]`, of shape `(*positions.shape, *row)`, for positions that the table has.

    >>> table_rows(torch.tensor([0.0, 0.1, 0.2]), torch.tensor([[2, 1]]))
    tensor([[0.2000, 0.1000]])

    Raises TypeError for positions that are no integers, ValueError outside 0 … rows − 1 (a RuntimeError in
    compiled code, which must not look at values) and for a table left on the meta device.
    Source: karpathy/nanochat #514, where a table was overrun.
    """
    if not isinstance(positions, torch.Tensor) or not _is_integer(positions):
        raise TypeError(f"positions must be a tensor of integers, got {_kind(positions)}; use torch.arange")
    if table.is_meta and not positions.is_meta:
        raise ValueError(
            "the table must be on a real device, got meta; call to_empty(device=...) on its module"
        )
    positions = positions.long()  # torch would take uint8 for a mask
    beyond = (positions < 0) | (positions >= table.shape[0])
    rule = f"positions must be 0 or more and less than {table.shape[0]}, the rows of the table"
    if torch.compiler.is_compiling():
        torch._assert_async(~beyond.any(), rule)
    elif not beyond.is_meta and beyond.any():
        raise ValueError(f"{rule}, got {positions[beyond][0]}; make a table with more rows")
    return table[positions]


def _is_integer(x):
    return not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool)


def _fits(shape, target):
    """Are the last two axes those of the target, and the others left out, or all there with a 1 where shared?"""
    if len(shape) == 2 or len(shape) != len(target):
        return len(shape) == 2 and shape == target[-2:]
    return shape[-2:] == target[-2:] and all(n == 1 or n == m for n, m in zip(shape, target, strict=True))


def _kind(value):
    """What was given, for a message."""
    if not isinstance(value, torch.Tensor):
        return f"{value!r:.60}"
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)} on {value.device}"
