"""Checking a parser: a corpus of model outputs, every chunking, and time that grows in proportion to the text."""

from hermes_parsers.testing.cases import Case, load_cases
from hermes_parsers.testing.check import Failure, Report, check_parser
from hermes_parsers.testing.streams import check_stream, read_in_pieces

__all__ = [
    "Case",
    "Failure",
    "Report",
    "check_parser",
    "check_stream",
    "load_cases",
    "read_in_pieces",
]
