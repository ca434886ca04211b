"""The file toolset: read, write, patch and search files of the workspace."""

from hermes_tools.registry import Toolset
from hermes_tools.toolsets.file.patch import patch
from hermes_tools.toolsets.file.read import read_file
from hermes_tools.toolsets.file.search import search_files
from hermes_tools.toolsets.file.write import write_file

FILE = Toolset("file", "Read, write, patch and search files.", (read_file, write_file, patch, search_files))
