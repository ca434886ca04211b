"""Results in the forms that others read: JSON of our own, OpenAI's fine-tuning form, and ATIF."""

from hermes_envs.trajectory.atif import ATIF_VERSION, to_atif
from hermes_envs.trajectory.plain import result_from_dict, result_to_dict

__all__ = ["ATIF_VERSION", "result_from_dict", "result_to_dict", "to_atif"]
