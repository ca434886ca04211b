"""Files that ship with the adapter."""

from pathlib import Path

DEFAULT_TOKENIZER = Path(__file__).parent / "tokenizer"
"""A small byte-level BPE tokenizer with a Hermes tool-calling template, so that nothing needs a model hub."""
