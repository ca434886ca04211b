import json

import jsonschema
import pytest
from hermes_benchmarks.schemas import published, schemas
from hermes_benchmarks_support import make_plan, make_run, record


@pytest.mark.parametrize("name", sorted(schemas()))
def test_the_published_schemas_are_those_of_the_classes(name):
    assert published(name) == schemas()[name], "run `python -m hermes_benchmarks.schemas`"
    jsonschema.Draft202012Validator.check_schema(published(name))


def test_files_of_a_run_fit_their_schemas(tmp_path):
    records = [
        record("alpha", cost=0.5),
        record("beta", verdict="sandbox_error"),
        record("gamma", verdict="tampered"),
    ]
    make_run(tmp_path, records, make_plan())
    jsonschema.validate(json.loads((tmp_path / "config.json").read_text()), published("config.schema.json"))
    results = sorted(tmp_path.glob("trials/*/result.json"))
    lines = (tmp_path / "trials.jsonl").read_text().splitlines()
    assert len(results) == len(lines) == len(records)
    for path in results:
        jsonschema.validate(json.loads(path.read_text()), published("result.schema.json"))
    for line in lines:
        jsonschema.validate(json.loads(line), published("line.schema.json"))


def test_the_schema_of_a_result_refuses_what_is_none():
    value = record().to_dict()
    for change in ({"reward": 2}, {"verdict": "won"}, {"attempt": 0}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(value | change, published("result.schema.json"))
