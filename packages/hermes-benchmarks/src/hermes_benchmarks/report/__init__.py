"""Reports of a run: Markdown, JSON, JUnit, and one HTML file."""

from hermes_benchmarks.report.data import RunData, read_run
from hermes_benchmarks.report.write import FORMATS, write_report

__all__ = ["FORMATS", "RunData", "read_run", "write_report"]
