"""The command lines `tb2`, `tblite` and `ycb`, and of any benchmark given to `benchmark_cli`."""
