"""Environments ready to run; each module is one, with its own command and default YAML."""
