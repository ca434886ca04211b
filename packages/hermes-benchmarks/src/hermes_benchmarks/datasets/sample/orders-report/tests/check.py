"""Judge of the task orders-report; each part counts, so the reward may lie between 0 and 1."""

import csv
import json
import os
import sqlite3
import subprocess
import tempfile
from functools import cache
from pathlib import Path

PARTIAL = True
HERE = Path(__file__).parent
MONTHS = ["January", "February", "March", "April", "May", "June"]


def cents(text):
    """Every amount has two decimals, so its digits are its cents."""
    return int("".join(letter for letter in text if letter.isdigit()))


def month(text):
    if text[0].isalpha():
        return f"{text[-4:]}-{MONTHS.index(text.split()[0]) + 1:02}"
    return f"{text[6:]}-{text[3:5]}" if "." in text else text[:7]


@cache
def orders():
    """(order, customer's name or None, country, month, EUR) of every order, from data made again by their recipe."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["bash", str(HERE / "make_shop.sh")], cwd=folder, check=True, timeout=60)
        shop = Path(folder, "shop")
        database = sqlite3.connect(shop / "customers.db")
        customers = {str(row[0]): row[1:] for row in database.execute("select id, name, country from customers")}
        database.close()
        with (shop / "orders.csv").open(newline="") as file:
            rows = {row[0]: row for row in list(csv.reader(file))[1:]}
        refunds = [json.loads(line) for line in (shop / "refunds.jsonl").read_text().splitlines()]
        rates = json.loads((shop / "rates.json").read_text())
    found = []
    for order, customer, date, currency, amount in rows.values():
        back = sum(round(refund["amount"] * 100) for refund in refunds if refund["order_id"] == order)
        name, country = customers.get(customer, (None, None))
        found.append((order, name, country, month(date), (cents(amount) - back) / 100 * rates[currency]))
    return found


def sums(index):
    total = {}
    for order in orders():
        if order[1] is not None:
            total[order[index]] = total.get(order[index], 0) + order[4]
    return total


def report():
    return json.loads(Path("report.json").read_text())


def close(found, expected):
    assert set(found) == set(expected), sorted(found)
    for key, value in expected.items():
        assert abs(found[key] - value) < 0.011, (key, found[key])


def check_number_of_orders():
    assert report()["orders"] == sum(order[1] is not None for order in orders())


def check_orphans():
    assert report()["orphans"] == sorted(order[0] for order in orders() if order[1] is None)


def check_revenue():
    close({"all": report()["revenue_eur"]}, {"all": sum(sums(1).values())})


def check_by_month():
    close(report()["by_month"], sums(3))


def check_by_country():
    close(report()["by_country"], sums(2))


def check_top_customers():
    total = sums(1)
    assert report()["top_customers"] == sorted(total, key=lambda name: -total[name])[:3]


# From here on every sample task is the same: run the checks, say what happened, write report and verdict.
def run_checks():
    results = []
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            try:
                check()
                results.append((name, ""))
            except Exception as error:
                results.append((name, f"{type(error).__name__}: {error}"))
            print(f"{'FAILED' if results[-1][1] else 'PASSED'} {name} {results[-1][1]}".rstrip())
    return results


def write_verdict(results):
    logs = Path(os.environ.get("TASK_ROOT", "") + "/logs/verifier")
    logs.mkdir(parents=True, exist_ok=True)
    failed = sum(bool(message) for _, message in results)
    passed = len(results) - failed
    tests = [
        {"name": name, "status": "failed" if message else "passed", "duration": 0, "message": message}
        for name, message in results
    ]
    summary = {"tests": len(results), "passed": passed, "failed": failed}
    report = {"results": {"tool": {"name": "check.py"}, "summary": summary, "tests": tests}}
    (logs / "ctrf.json").write_text(json.dumps(report, indent=1))
    print(f"==== {f'{failed} failed, ' if failed else ''}{passed} passed ====")
    reward = passed / len(results) if PARTIAL else float(not failed)
    (logs / "reward.txt").write_text(f"{reward:g}\n")


write_verdict(run_checks())
