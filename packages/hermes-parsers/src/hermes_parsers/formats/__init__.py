"""Declarations of the built-in formats; a module loads when one of its formats is asked for."""
