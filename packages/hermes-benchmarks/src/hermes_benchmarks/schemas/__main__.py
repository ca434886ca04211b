"""Write the published schemas anew."""

from pathlib import Path

from hermes_benchmarks.schemas import write

write(Path(__file__).parent)
