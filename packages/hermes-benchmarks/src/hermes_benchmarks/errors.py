"""What a person at the command line did wrong, said in one sentence."""


class BenchmarkError(Exception):
    """The base of this package's errors."""


class UsageError(BenchmarkError):
    """Bad input: the command says so in one sentence and exits with 2."""


class EndpointError(UsageError):
    """The model's endpoint is not there, or refuses the key."""
