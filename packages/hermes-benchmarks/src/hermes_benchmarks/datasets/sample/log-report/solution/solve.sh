#!/bin/bash
set -eu
python3 - <<'PY'
import collections
import datetime
import re

UTC = datetime.timezone.utc
LEVELS = {"err": "error", "error": "error", "e": "error", "warn": "warning", "warning": "warning", "w": "warning"}
LEVELS |= {"info": "info", "i": "info"}
counts = collections.Counter()


def add(when, service, level):
    hour = when.astimezone(UTC).strftime("%Y-%m-%dT%H")
    counts[hour, service, LEVELS.get(level.lower(), "other")] += 1


for line in open("logs/api.log"):
    if found := re.match(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d) \[(\w+)\] ", line):
        add(datetime.datetime.fromisoformat(found[1]), "api", found[2])
for line in open("logs/worker.log"):
    if found := re.match(r"(\d+) (\w+): ", line):
        add(datetime.datetime.fromtimestamp(int(found[1]), UTC), "worker", found[2])
for line in open("logs/db.log"):
    if found := re.match(r"([A-Z]\w\w +\d+ \d{4} \d\d:\d\d:\d\d) db\[\d+\]: (\w) ", line):
        when = datetime.datetime.strptime(" ".join(found[1].split()), "%b %d %Y %H:%M:%S")
        add(when.replace(tzinfo=UTC), "db", found[2])
with open("report.csv", "w") as out:
    out.write("hour,service,level,count\n")
    for (hour, service, level), count in sorted(counts.items()):
        out.write(f"{hour},{service},{level},{count}\n")
errors = collections.Counter()
for (hour, _, level), count in counts.items():
    if level == "error":
        errors[hour] += count
worst = min(errors, key=lambda hour: (-errors[hour], hour))
open("worst.txt", "w").write(worst + "\n")
PY
