"""Tiny language models for the laboratory: six ways to bring in positions, trained in seconds, read far beyond.

Press et al. 2022 (ALiBi) asked the question: train short, test long. A model has about 100 000 weights and reads
characters; the second task, finding a needle, has made-up tokens. Everything random follows from a seed.
"""

import copy
import math
import os
import re
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Lock

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from companion.attention_torch import attention, causal_mask
from companion.embeddings_torch import LearnedPositions, SinusoidalPositions, T5Bias
from companion.frequencies import _positive, inverse_frequencies
from companion.frequency_scaling import _length
from companion.relative_bias import alibi_bias, alibi_slopes, relative_offsets
from companion.rope_torch import RotaryEmbedding, apply_rope

ENCODINGS = ("learned", "sinusoidal", "rope", "t5", "alibi", "none")
NUM_KEYS, NUM_VALUES, NUM_NOISE, NUM_FACTS = 8, 8, 16, 4
NEEDLE_TOKENS = NUM_KEYS * NUM_VALUES + NUM_KEYS + NUM_NOISE  # facts, then questions, then noise
_NO_TARGET = -100  # what cross_entropy leaves out
_LONGEST = 1024  # rows of the tables, and the longest context
_WIDTH, _HEADS = 64, 4


def topics_text():
    """Return the help texts of the running Python (`help("while")` and the like) as plain ASCII, more than 400 000 characters.

    The text differs between versions of Python, and so do the losses. Source: `pydoc_data.topics` of the
    standard library, under the licence of Python.

    >>> topics_text().isascii()
    True
    """
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    text = text.translate(str.maketrans("“”’‘–—", "\"\"''--"))
    text = re.sub(r"-{4,}", "---", re.sub(r"\n\s*", "\n", re.sub(r"[ \t]+", " ", text)))
    return text.encode("ascii", "ignore").decode()


def character_ids(text):
    """Return the number of every character in the sorted alphabet of the text, an int64 tensor `(len(text),)`.

    >>> character_ids("abba")
    tensor([0, 1, 1, 0])

    Raises TypeError unless `text` is a string, ValueError if it is empty.
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}; read the file first")
    if not text:
        raise ValueError("text must have at least one character, got ''; use topics_text()")
    numbers = {character: number for number, character in enumerate(sorted(set(text)))}
    return torch.tensor([numbers[character] for character in text])


class TinyLanguageModel(torch.nn.Module):
    """A causal Transformer with one of ENCODINGS; called on tokens `(batch, seq_len)`, returns logits over `num_tokens`.

    Width 64, 4 heads, pre-norm, ReLU, tied embedding. Whatever the encoding, the other weights are the same for
    the same seed. RoPE starts with base 100: in 64 tokens five of its eight pairs then complete a turn.

    >>> model = TinyLanguageModel(10, "rope")
    >>> model(torch.zeros(2, 5, dtype=torch.long)).shape
    torch.Size([2, 5, 10])

    Raises ValueError for another encoding, TypeError or ValueError for numbers that are no integers ≥ 1 and as
    `inverse_frequencies` and `t5_buckets` do. Source: Vaswani et al. 2017; Press et al. 2022 for the comparison.
    """

    def __init__(self, num_tokens, encoding, *, num_layers=2, base=100.0, t5_distance=64, seed=0):
        super().__init__()
        if encoding not in ENCODINGS:
            raise ValueError(f"encoding must be one of {ENCODINGS}, got {encoding!r}; write one of them")
        self.encoding, self.attention_factor = encoding, 1.0
        self.embedding = torch.nn.Embedding(_length("num_tokens", num_tokens, of="tokens"), _WIDTH)
        num_layers = _length("num_layers", num_layers, of="layers")
        self.blocks = torch.nn.ModuleList(_Block() for _ in range(num_layers))
        self.norm = torch.nn.LayerNorm(_WIDTH, bias=False)
        self._draw_weights(torch.Generator().manual_seed(seed))
        if encoding == "rope":
            self.inv_freq = inverse_frequencies(_WIDTH // _HEADS, base)
            self.positions = RotaryEmbedding(self.inv_freq, _LONGEST)
        elif encoding == "t5":
            self.positions = T5Bias(_HEADS, max_distance=t5_distance, bidirectional=False)
            torch.nn.init.zeros_(self.positions.weight)
        elif encoding == "sinusoidal":
            self.positions = SinusoidalPositions(_LONGEST, _WIDTH)

    def _draw_weights(self, generator):
        """Matrices keep the size of what they are given; positions, where learned, come last and disturb no other."""
        for weight in (w for w in self.parameters() if w.ndim == 2):
            torch.nn.init.normal_(weight, std=weight.shape[1] ** -0.5, generator=generator)
        for block in self.blocks:  # so that depth does not change the size of what the last layer reads
            for branch in (block.out, block.down):
                branch.weight.data /= math.sqrt(2 * len(self.blocks))
        if self.encoding == "learned":
            self.positions = LearnedPositions(_LONGEST, _WIDTH)
            torch.nn.init.normal_(self.positions.weight, std=_WIDTH**-0.5, generator=generator)

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[-1], device=tokens.device)
        x, rotation, bias = self.embedding(tokens), None, None
        if self.encoding == "learned":
            x = self.positions(x, positions)
        elif self.encoding == "sinusoidal":
            x = self.positions(x, positions) / math.sqrt(_WIDTH)  # undoes its √d_model, which the others lack
        elif self.encoding == "rope":
            rotation = self.positions(positions)
        elif self.encoding == "t5":
            bias = 8 * self.positions(positions, positions)[None]  # or it learns too slowly for so few steps
        elif self.encoding == "alibi":
            steps = np.arange(len(positions))
            bias = alibi_bias(relative_offsets(steps, steps), alibi_slopes(_HEADS))
            bias = torch.tensor(bias[None], dtype=x.dtype, device=x.device)
        mask = causal_mask(positions, positions)
        for block in self.blocks:
            x = block(x, rotation, bias, mask, self.attention_factor**2)
        return self.norm(x) @ self.embedding.weight.T

    def extended(self, inv_freq=None, *, attention_factor=1.0):
        """Return a copy with other speeds of its rotation (RoPE only) and scores times `attention_factor`².

        Raises ValueError for speeds given to another encoding; else as `RotaryEmbedding`.
        """
        model = copy.deepcopy(self)
        model.attention_factor = _positive("attention_factor", attention_factor)
        if inv_freq is not None:
            if self.encoding != "rope":
                raise ValueError(
                    f"inv_freq must be None for an encoding that does not rotate, got speeds for {self.encoding!r}; "
                    "use encoding 'rope'"
                )
            if len(inv_freq) != len(self.inv_freq):
                raise ValueError(
                    f"inv_freq must have {len(self.inv_freq)} speeds, one for each pair of a head, "
                    f"got {len(inv_freq)}; scale model.inv_freq"
                )
            model.positions = RotaryEmbedding(inv_freq, _LONGEST).to(self.embedding.weight.device)
            model.inv_freq = inv_freq
        return model


class _Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = (torch.nn.LayerNorm(_WIDTH, bias=False) for _ in range(2))
        sizes = {"qkv": (_WIDTH, 3 * _WIDTH), "out": (_WIDTH, _WIDTH)}
        sizes |= {"up": (_WIDTH, 4 * _WIDTH), "down": (4 * _WIDTH, _WIDTH)}
        for name, (inputs, outputs) in sizes.items():
            setattr(self, name, torch.nn.Linear(inputs, outputs, bias=False))

    def forward(self, x, rotation, bias, mask, score_factor):
        q, k, v = self.qkv(self.norm_1(x)).unflatten(-1, (3, _HEADS, -1)).permute(2, 0, 3, 1, 4)
        if rotation is not None:
            q, k = apply_rope(q, *rotation), apply_rope(k, *rotation)
        heads = attention(q, k, v, scale=score_factor * q.shape[-1] ** -0.5, bias=bias, mask=mask)
        x = x + self.out(heads.transpose(1, 2).flatten(-2))
        return x + self.down(self.up(self.norm_2(x)).relu())


def text_batches(ids, length, *, steps=400, batch_size=16, seed=0):
    """Return a list of pairs (tokens, targets), each `(batch_size, length)`: random pieces, and the same one later.

    >>> tokens, targets = text_batches(torch.arange(9), 3, steps=1)[0]
    >>> bool((targets == tokens + 1).all())
    True

    Raises ValueError for a text of no more than `length` characters.
    """
    if len(ids) <= _length("length", length):
        raise ValueError(
            f"ids must be longer than length={length}, got {len(ids)} characters; take a longer text"
        )
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(ids) - length, (steps, batch_size, 1), generator=generator)
    pieces = ids[starts + torch.arange(length + 1)]
    return [(piece[:, :-1], piece[:, 1:]) for piece in pieces]


def needle_batches(length, *, steps=400, batch_size=16, seed=0, oldest=False):
    """Return a list of pairs (tokens, targets), each `(batch_size, length)`, of the task "find the needle".

    Four tokens among noise say "key k has value v", at random places, or, with `oldest`, among the first eight
    tokens. The last four tokens ask for these keys, and only there is a target, the token number of v.
    """
    if _length("length", length) < 8 + NUM_FACTS:
        raise ValueError(
            f"length must be at least {8 + NUM_FACTS}, got {length}; facts and questions need room"
        )
    generator = torch.Generator().manual_seed(seed)

    def choices(count):  # NUM_FACTS different numbers below count, for every row
        return torch.rand(steps, batch_size, count, generator=generator).argsort(-1)[..., :NUM_FACTS]

    shape = steps, batch_size, length
    first_noise = NEEDLE_TOKENS - NUM_NOISE
    tokens = torch.randint(first_noise, NEEDLE_TOKENS, shape, generator=generator)
    keys, places = choices(NUM_KEYS), choices(8 if oldest else length - NUM_FACTS)
    values = torch.randint(NUM_VALUES, keys.shape, generator=generator)
    tokens.scatter_(-1, places, keys * NUM_VALUES + values)
    tokens[..., -NUM_FACTS:] = NUM_KEYS * NUM_VALUES + keys
    targets = torch.full(shape, _NO_TARGET)
    targets[..., -NUM_FACTS:] = values
    return list(zip(tokens, targets, strict=True))


def train(model, batches, *, learning_rate, on_step=None):
    """Train the model once over the batches, in place, and return the loss of every step in nats.

    AdamW, the learning rate up over the first tenth and down to 0 as a cosine. `on_step()` is called after each step.
    """
    if not batches:
        raise ValueError("batches must hold at least one pair (tokens, targets), got 0; see text_batches")
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.1, foreach=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, learning_rate, total_steps=len(batches) + 1, pct_start=0.1, cycle_momentum=False
    )
    losses = []
    for batch in batches:
        tokens, targets = (part.to(model.embedding.weight.device) for part in batch)
        loss = cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), ignore_index=_NO_TARGET)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if on_step:
            on_step()
    return losses


def train_all(models, batches, *, learning_rate):
    """Train every model of a dict {name: model} over the same batches; return {name: losses}. One line shows how far it is."""
    done, lock = 0, Lock()

    def one_more():
        nonlocal done
        with lock:
            done += 1

    def show(end=""):
        share = done / (len(models) * len(batches))
        print(f"\r{'█' * int(30 * share):·<30} {share:4.0%}", end=end, flush=True)

    losses = for_each(
        models,
        lambda model: train(model, batches, learning_rate=learning_rate, on_step=one_more),
        while_waiting=show,
    )
    show(end="\n")
    return losses


def for_each(models, function, *, while_waiting=None):
    """Return {name: function(model)} for a dict {name: model}, in one thread a core.

    Models so small gain nothing from several threads each, and what comes out does not depend on how many work.
    """
    threads_before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(os.cpu_count(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
            jobs = {name: pool.submit(function, model) for name, model in models.items()}
            while wait(jobs.values(), timeout=1).not_done:
                if while_waiting:
                    while_waiting()
        return {name: job.result() for name, job in jobs.items()}
    finally:
        torch.set_num_threads(threads_before)


@torch.no_grad()
def losses_by_length(model, ids, lengths, *, windows=64, last=16):
    """Return the mean loss in nats per character for each context length up to 1024, float64 `(len(lengths),)`.

    The characters to guess are the same for every length, the last 16 of each of 64 pieces; only how much
    text stands before them changes. Raises ValueError for a longer context, or a text with no room for one.
    """
    if not last <= min(lengths) <= max(lengths) <= _LONGEST or len(ids) < _LONGEST + windows:
        raise ValueError(
            f"lengths must lie in {last} … {_LONGEST} and ids have {_LONGEST + windows} characters or more, "
            f"got {list(lengths)} and {len(ids)}; read no farther, or take a longer text"
        )
    device = model.embedding.weight.device
    ends = torch.linspace(_LONGEST, len(ids) - 1, windows).long()[:, None]  # of the targets
    targets = ids[ends + torch.arange(1 - last, 1)].to(device)
    found = []
    for length in lengths:
        pieces = ids[ends + torch.arange(-length, 0)].to(device)
        logits = torch.cat([model(piece)[:, -last:] for piece in pieces.split(16)])
        found.append(cross_entropy(logits.double().flatten(0, 1), targets.flatten()).item())
    return np.array(found)


@torch.no_grad()
def needle_accuracy(model, length, *, oldest=False, texts=64, seed=1000):
    """Return the share of questions answered rightly, of four in each of `texts` texts of this length."""
    device, right = model.embedding.weight.device, []
    for tokens, targets in needle_batches(length, steps=-(-texts // 16), seed=seed, oldest=oldest):
        answers = model(tokens.to(device))[:, -NUM_FACTS:].argmax(-1).cpu()
        right.append(answers == targets[:, -NUM_FACTS:])
    return torch.cat(right).double().mean().item()
