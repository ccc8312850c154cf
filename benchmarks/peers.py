"""Rotary embeddings of other packages, as their own models call them once the tables are there.

Each function takes a query `(batch, heads, seq_len, head_dim)` and its first position, and returns
`(pairing, axes, turn)`: `turn(q, k)` returns both turned, with the heads before or behind the tokens as `axes` says.
"""

import importlib.util
import logging
from importlib.metadata import PackageNotFoundError, files

import torch

HEADS_FIRST, TOKENS_FIRST = "batch heads tokens", "batch tokens heads"


def transformers(q, first):
    logging.disable(logging.WARNING)
    from transformers import LlamaConfig
    from transformers.models.llama import modeling_llama as llama

    _, heads, seq_len, head_dim = q.shape
    config = LlamaConfig(hidden_size=heads * head_dim, num_attention_heads=heads, head_dim=head_dim)
    cos, sin = llama.LlamaRotaryEmbedding(config)(q, torch.arange(first, first + seq_len)[None])
    return "half", HEADS_FIRST, lambda q, k: llama.apply_rotary_pos_emb(q, k, cos, sin)


def torchtune(q, first):
    # The package does not import beside every torchao; this file of it needs torch only.
    path = next(path for path in files("torchtune") if path.match("modules/position_embeddings.py")).locate()
    spec = importlib.util.spec_from_file_location("torchtune_positions", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    turn = module.RotaryPositionalEmbeddings(q.shape[-1], max_seq_len=4096)
    positions = torch.arange(first, first + q.shape[-2])[None]
    return "adjacent", TOKENS_FIRST, lambda q, k: (turn(q, input_pos=positions), turn(k, input_pos=positions))


def rotary_embedding_torch(q, first):
    from rotary_embedding_torch import RotaryEmbedding

    turn = RotaryEmbedding(dim=q.shape[-1]).rotate_queries_or_keys
    return "adjacent", HEADS_FIRST, lambda q, k: (turn(q, offset=first), turn(k, offset=first))


def x_transformers(q, first):
    from x_transformers.x_transformers import RotaryEmbedding, apply_rotary_pos_emb

    angles, _ = RotaryEmbedding(q.shape[-1])(torch.arange(first, first + q.shape[-2]))
    return (
        "adjacent",
        HEADS_FIRST,
        lambda q, k: (apply_rotary_pos_emb(q, angles), apply_rotary_pos_emb(k, angles)),
    )


PACKAGES = {
    "transformers": transformers,
    "torchtune": torchtune,
    "rotary-embedding-torch": rotary_embedding_torch,
    "x-transformers": x_transformers,
}


def installed_packages():
    """The names of those that can be measured here."""
    found = []
    for name, make in PACKAGES.items():
        try:
            make(torch.zeros(1, 1, 1, 8), 0)
            found.append(name)
        except (ImportError, PackageNotFoundError) as missing:
            print(f"without {name}: {missing}")
    return found
