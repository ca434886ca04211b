#!/bin/bash
# Fill the working folder, in an image and in a local sandbox alike.
set -eu
mkdir -p logs
python3 - <<'PY'
import random
import time

rng = random.Random(7)
START = 1714530000  # 2024-05-01T02:20:00Z
WORDS = ["connection reset", "slow query", "user logged in", "retry scheduled", "cache miss", "[ERROR] quoted by a client"]


def stamp(seconds, minutes):
    local = time.gmtime(seconds + minutes * 60)
    sign = "+" if minutes >= 0 else "-"
    return time.strftime("%Y-%m-%dT%H:%M:%S", local) + f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def times(count):
    return sorted(START + rng.randrange(12 * 3600) for _ in range(count))


with open("logs/api.log", "w") as out:
    for seconds in times(260):
        level = rng.choice(["ERROR", "error", "Warn", "WARNING", "INFO", "info", "DEBUG", "Err"])
        out.write(f"{stamp(seconds, rng.choice([120, 120, -330, 0]))} [{level}] {rng.choice(WORDS)}\n")
        if rng.random() < 0.1:
            out.write("    at handler (api.js:17)\n\t2024-05-01T09:12:33+02:00 [ERROR] nested\n")
    out.write("-- log rotated --\n")
with open("logs/worker.log", "w") as out:
    for seconds in times(230):
        level = rng.choice(["error", "err", "ERR", "warn", "warning", "info", "INFO", "trace"])
        out.write(f"{seconds} {level}: {rng.choice(WORDS)}\n")
        if rng.random() < 0.05:
            out.write(f"{seconds} crashed without a level\n")
with open("logs/db.log", "w") as out:
    for seconds in times(210):
        day = time.strftime("%b %d %Y %H:%M:%S", time.gmtime(seconds)).replace(" 0", "  ", 1)
        out.write(f"{day} db[{rng.randrange(100, 999)}]: {rng.choice('EEWWIIN')} {rng.choice(WORDS)}\n")
        if rng.random() < 0.08:
            out.write("  DETAIL: E nothing to see\n")
PY
