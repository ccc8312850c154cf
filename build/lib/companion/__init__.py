"""Companion package of the course "Where Order Lives": the positional encodings of Transformers.

Importing it loads NumPy only; import the module that you need, for example `companion.rope`.
"""
