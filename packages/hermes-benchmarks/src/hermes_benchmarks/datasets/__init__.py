"""Where tasks come from: a folder, a Hugging Face dataset, a local file of its rows, or the packaged samples."""

from hermes_benchmarks.datasets.rows import tasks_from_rows
from hermes_benchmarks.datasets.sample_set import sample_path
from hermes_benchmarks.datasets.sources import DatasetError, load_dataset_tasks, stray_folders

__all__ = ["DatasetError", "load_dataset_tasks", "sample_path", "stray_folders", "tasks_from_rows"]
