"""The grammars that formats are declared over."""
