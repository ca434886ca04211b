"""The backends that come with this package, each loaded when it is first asked for."""
