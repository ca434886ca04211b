"""Plug-ins that give these parsers to inference servers."""
