"""Rows of datasets on disk."""

import json

import pytest
from hermes_envs.atropos.datasets import load_rows

pytestmark = pytest.mark.atropos


def test_a_line_of_json_ends_where_a_file_says_and_not_where_a_text_does(tmp_path):
    rows = [{"text": "one\u2028two\u2029three\x85four"}, {"text": "next"}]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n", encoding="utf-8")
    assert load_rows(str(path)) == rows
