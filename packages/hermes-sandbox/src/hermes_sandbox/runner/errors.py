"""What goes wrong with a runner; it stays within this package."""


class RunnerLost(ConnectionError):
    """The runner ended or cannot be reached any more."""
