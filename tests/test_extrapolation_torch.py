"""The tiny models are what they claim to be, and the laboratory measures what it says; nothing here trains for long."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is an extra: pip install -e '.[torch]'")
torch.set_num_threads(1)  # other tests have the other cores

from companion import extrapolation_torch as lab  # noqa: E402
from companion.attention import attention, causal_mask  # noqa: E402
from companion.extrapolation_torch import (  # noqa: E402
    ENCODINGS,
    NEEDLE_TOKENS,
    TinyLanguageModel,
    character_ids,
    for_each,
    losses_by_length,
    needle_accuracy,
    needle_batches,
    text_batches,
    topics_text,
    train,
    train_all,
)
from companion.frequency_scaling import position_interpolation  # noqa: E402
from companion.relative_bias import alibi_bias, relative_offsets, t5_buckets  # noqa: E402
from companion.rope import apply_rope, rotation_table  # noqa: E402
from companion.sinusoidal import sinusoidal_table  # noqa: E402

TOKENS = torch.randint(20, (2, 37), generator=torch.Generator().manual_seed(1))


def model_with(encoding, **options):
    """A model whose T5 bias is not zero, as it is before training."""
    model = TinyLanguageModel(20, encoding, seed=3, **options)
    if encoding == "t5":
        torch.nn.init.normal_(model.positions.weight, generator=torch.Generator().manual_seed(2))
    return model


def layer_norm(x, weight):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight


def oracle(model, tokens, *, inv_freq=None, attention_factor=1.0):
    """The logits of one text in NumPy, from the weights of the model and the tables of companion."""
    w = {name: weight.detach().double().numpy() for name, weight in model.state_dict().items()}
    positions = np.arange(len(tokens))
    offsets, bias = relative_offsets(positions, positions), None
    x = w["embedding.weight"][tokens]
    if model.encoding == "learned":
        x = x + w["positions.weight"][positions]
    if model.encoding == "sinusoidal":
        x = x + sinusoidal_table(positions, 64) / 8
    if model.encoding == "t5":
        buckets = t5_buckets(offsets, max_distance=64, bidirectional=False)
        bias = 8 * np.moveaxis(w["positions.weight"][buckets], -1, 0)
    if model.encoding == "alibi":
        bias = alibi_bias(offsets, [1 / 4, 1 / 16, 1 / 64, 1 / 256])
    for block in ("blocks.0.", "blocks.1."):
        qkv = layer_norm(x, w[block + "norm_1.weight"]) @ w[block + "qkv.weight"].T
        q, k, v = np.moveaxis(qkv.reshape(len(tokens), 3, 4, 16), [1, 2], [0, 1])
        if model.encoding == "rope":
            table = rotation_table(positions, 100.0 ** (-np.arange(8) / 8) if inv_freq is None else inv_freq)
            q, k = apply_rope(q, *table), apply_rope(k, *table)
        mask = causal_mask(positions, positions)
        heads = attention(q, k, v, scale=attention_factor**2 / 4, bias=bias, mask=mask)
        x = x + np.moveaxis(heads, 0, 1).reshape(len(tokens), 64) @ w[block + "out.weight"].T
        hidden = layer_norm(x, w[block + "norm_2.weight"]) @ w[block + "up.weight"].T
        x = x + np.maximum(hidden, 0) @ w[block + "down.weight"].T
    return layer_norm(x, w["norm.weight"]) @ w["embedding.weight"].T


def assert_agrees(model, **options):
    with torch.no_grad():
        got = model(TOKENS).numpy()
    for tokens, logits in zip(TOKENS.numpy(), got, strict=True):
        want = oracle(model, tokens, **options)
        # A sum of 64 products, two layers deep, each of several such sums: some hundred roundings.
        np.testing.assert_allclose(
            logits, want, rtol=0, atol=256 * np.finfo(np.float32).eps * abs(want).max()
        )


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_model_computes_what_the_numpy_modules_say(encoding):
    assert_agrees(model_with(encoding))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_token_changes_what_was_said_before_it(encoding):
    model, other = model_with(encoding), TOKENS.clone()
    other[:, -1] = (other[:, -1] + 1) % 20
    with torch.no_grad():
        change = (model(TOKENS) - model(other)).abs().amax((0, 2))
    assert change[:-1].max() == 0 and change[-1] > 0.1


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_weights_that_all_encodings_share_start_alike_and_follow_the_seed(encoding):
    plain, mine = TinyLanguageModel(20, "none", seed=3), TinyLanguageModel(20, encoding, seed=3)
    own = mine.state_dict()
    assert all(torch.equal(weight, own[name]) for name, weight in plain.state_dict().items())
    other = TinyLanguageModel(20, encoding, seed=4).state_dict()
    assert not torch.equal(own["embedding.weight"], other["embedding.weight"])


def test_an_extended_model_has_the_new_speeds_and_leaves_the_old_one_alone():
    model = model_with("rope")
    slower = position_interpolation(model.inv_freq, 4)
    longer = model.extended(slower, attention_factor=1.2)
    assert_agrees(longer, inv_freq=slower, attention_factor=1.2)
    assert_agrees(model)
    with torch.no_grad():
        longer.embedding.weight.zero_()
    assert_agrees(model)


def test_the_temperature_multiplies_scores_and_not_the_bias_of_alibi():
    model = model_with("alibi").extended(attention_factor=1.3)
    assert_agrees(model, attention_factor=1.3)


def test_other_settings_reach_the_tables():
    assert TinyLanguageModel(20, "rope", base=10000.0).inv_freq[1] == pytest.approx(10000 ** (-1 / 8))
    far = TinyLanguageModel(20, "t5", t5_distance=128).positions.table
    assert len(far) == 2 * 128 + 1


def test_the_text_is_plain_and_the_same_every_time():
    text = topics_text()
    assert len(text) > 300_000 and text.isascii() and text == topics_text()
    assert not any(double in text for double in ("\n\n", "----"))


def test_characters_are_numbered_without_gaps():
    text = topics_text()[:5000]
    ids = character_ids(text)
    alphabet = sorted(set(text))
    assert "".join(alphabet[i] for i in ids) == text


def test_the_targets_of_a_piece_are_the_characters_that_follow():
    ids = torch.arange(1000)
    batches = text_batches(ids, 10, steps=3, batch_size=5, seed=1)
    assert [tuple(tokens.shape) for tokens, _ in batches] == [(5, 10)] * 3
    for tokens, targets in batches:
        assert torch.equal(targets, tokens + 1)
    assert len({int(tokens[0, 0]) for tokens, _ in batches}) == 3


class Fake(torch.nn.Module):
    """A model that answers by a rule: `rule` gets the tokens and returns what it is sure of."""

    def __init__(self, rule, num_tokens):
        super().__init__()
        self.rule, self.embedding = rule, torch.nn.Embedding(num_tokens, 1)

    def forward(self, tokens):
        return 50.0 * torch.nn.functional.one_hot(self.rule(tokens), self.embedding.num_embeddings)


def test_who_knows_the_next_character_has_no_loss_at_any_length():
    ids = torch.arange(2000) % 10
    knows = Fake(lambda tokens: (tokens + 1) % 10, 10)
    assert losses_by_length(knows, ids, [16, 64, 1024]) == pytest.approx([0, 0, 0], abs=1e-9)
    copies = Fake(lambda tokens: tokens, 10)
    assert losses_by_length(copies, ids, [16, 64]) == pytest.approx([50, 50])


def test_the_characters_to_guess_are_the_same_for_every_length():
    ids = torch.randint(10, (3000,), generator=torch.Generator().manual_seed(0))
    looks_at_one = Fake(lambda tokens: tokens, 10)
    losses = losses_by_length(looks_at_one, ids, [16, 100, 1024])
    assert losses[0] > 1 and losses == pytest.approx([losses[0]] * 3)
    assert losses_by_length(looks_at_one, ids, [100])[0] == losses[1]


def looked_up(tokens):
    """The value of the key that each token asks for, by the fact in its text."""
    answers = torch.zeros_like(tokens)
    for row, answer in zip(tokens, answers, strict=True):
        values = {int(t) // 8: int(t) % 8 for t in row if t < 64}
        for place, token in enumerate(row):
            if 64 <= token < 72:
                answer[place] = values[int(token) - 64]
    return answers


@pytest.mark.parametrize("oldest", [False, True])
def test_every_question_has_one_fact_and_its_value_is_the_target(oldest):
    for tokens, targets in needle_batches(40, steps=5, seed=7, oldest=oldest):
        for row, wanted in zip(tokens, targets, strict=True):
            facts = (row < 64).nonzero().ravel()
            questions = ((row >= 64) & (row < 72)).nonzero().ravel()
            assert questions.tolist() == [36, 37, 38, 39]
            assert sorted((row[facts] // 8).tolist()) == sorted((row[questions] - 64).tolist())
            assert len(set((row[facts] // 8).tolist())) == 4
            assert (wanted[:36] == -100).all()
            assert not oldest or facts.max() < 8
        assert torch.equal(looked_up(tokens)[:, -4:], targets[:, -4:])
        assert tokens.max() < NEEDLE_TOKENS


def test_needles_are_spread_over_the_text_unless_they_are_asked_to_be_old():
    tokens = torch.cat([tokens for tokens, _ in needle_batches(40, steps=20)])
    places = (tokens < 64).nonzero()[:, 1]
    assert places.min() == 0 and places.max() == 35


def test_a_perfect_seeker_finds_all_needles_and_a_blind_one_an_eighth():
    assert needle_accuracy(Fake(looked_up, NEEDLE_TOKENS), 40, oldest=True) == 1
    blind = needle_accuracy(Fake(lambda tokens: 0 * tokens + 3, NEEDLE_TOKENS), 40, texts=512)
    # 2048 answers of probability 1/8: four standard deviations
    assert abs(blind - 1 / 8) < 4 * math.sqrt(1 / 8 * 7 / 8 / 2048)


def test_training_learns_and_does_not_depend_on_the_threads(capsys):
    ids = torch.arange(300) % 7
    batches = text_batches(ids, 12, steps=30, batch_size=4)
    alone = TinyLanguageModel(7, "rope")
    losses = train(alone, batches, learning_rate=1e-2)
    together = {name: TinyLanguageModel(7, name) for name in ("none", "rope", "t5")}
    found = train_all(together, batches, learning_rate=1e-2)
    assert found["rope"] == losses and losses[-1] < 0.2 < losses[0]
    assert torch.equal(together["rope"].embedding.weight, alone.embedding.weight)
    shown = capsys.readouterr().out
    assert shown.endswith("100%\n") and shown.count("\n") == 1


def test_a_fault_in_a_thread_reaches_the_caller_and_threads_are_as_before():
    torch.set_num_threads(2)
    try:
        with pytest.raises(ZeroDivisionError):
            for_each({"a": 1, "b": 0}, lambda x: 1 / x)
        with ThreadPoolExecutor(1) as later:  # a new thread takes what was last set anywhere
            assert later.submit(torch.get_num_threads).result() == 2
    finally:
        torch.set_num_threads(1)
    assert for_each({"a": 1, "b": 2}, lambda x: 10 * x) == {"a": 10, "b": 20}


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: TinyLanguageModel(20, "rotary"), ValueError, "encoding must be one of .*, got 'rotary'; "),
        (lambda: TinyLanguageModel(0, "rope"), ValueError, "num_tokens must be at least 1, got 0; "),
        (lambda: model_with("alibi").extended([1.0] * 8), ValueError, "inv_freq must be None.*'alibi'; "),
        (lambda: model_with("rope").extended([1.0] * 7), ValueError, "inv_freq must have 8 speeds.*got 7; "),
        (lambda: model_with("rope").extended(attention_factor=0), ValueError, "attention_factor must be .*0"),
        (lambda: character_ids(b"abc"), TypeError, "text must be a string, got bytes; "),
        (lambda: character_ids(""), ValueError, "text must have at least one character, got ''; "),
        (lambda: text_batches(torch.arange(9), 9), ValueError, "longer than length=9, got 9 characters; "),
        (lambda: text_batches(torch.arange(9), 0), ValueError, "length must be at least 1, got 0; "),
        (lambda: needle_batches(11), ValueError, "length must be at least 12, got 11; "),
        (lambda: needle_batches(20.0), TypeError, "length must be an integer, got 20.0; "),
        (
            lambda: losses_by_length(Fake(None, 9), torch.arange(2000), [1025]),
            ValueError,
            "lengths must lie in 16 … 1024.*got \\[1025\\]",
        ),
        (
            lambda: losses_by_length(Fake(None, 9), torch.arange(1000), [64]),
            ValueError,
            "ids have 1088 characters or more, got .* and 1000; ",
        ),
        (
            lambda: train(model_with("rope"), [], learning_rate=1e-2),
            ValueError,
            "batches must hold .*got 0; ",
        ),
    ],
)
def test_bad_input_is_refused_with_the_rule_and_a_way_out(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_a_text_longer_than_the_tables_is_refused_by_those_that_have_one():
    for encoding in ("learned", "sinusoidal", "rope"):
        with pytest.raises(ValueError, match="1024"):
            model_with(encoding)(torch.zeros(1, 1025, dtype=torch.long))
    assert lab.TinyLanguageModel(20, "alibi")(torch.zeros(1, 1025, dtype=torch.long)).shape[1] == 1025
