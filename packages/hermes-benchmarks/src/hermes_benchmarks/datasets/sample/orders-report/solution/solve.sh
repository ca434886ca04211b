#!/bin/bash
set -eu
python3 - <<'PY'
import csv
import datetime
import json
import re
import sqlite3
from collections import Counter
from decimal import Decimal


def amount(text):
    if re.search(r",\d\d$", text):
        text = text.replace(".", "").replace(",", ".")
    return Decimal(text.replace(",", ""))


def month(text):
    for pattern in ("%Y-%m-%d", "%d.%m.%Y", "%B %d, %Y"):
        try:
            return datetime.datetime.strptime(text, pattern).strftime("%Y-%m")
        except ValueError:
            pass
    raise ValueError(text)


rates = {name: Decimal(str(rate)) for name, rate in json.load(open("shop/rates.json")).items()}
customers = {row[0]: row[1:] for row in sqlite3.connect("shop/customers.db").execute("select id, name, country from customers")}
orders = {row["order_id"]: row for row in csv.DictReader(open("shop/orders.csv", newline=""))}
refunds = Counter()
for line in open("shop/refunds.jsonl"):
    refund = json.loads(line)
    refunds[refund["order_id"]] += Decimal(str(refund["amount"]))
total, by_month, by_country, by_customer, orphans = Decimal(0), Counter(), Counter(), Counter(), []
for order_id, order in orders.items():
    customer = customers.get(int(order["customer_id"]))
    if customer is None:
        orphans.append(order_id)
        continue
    euros = (amount(order["amount"]) - refunds[order_id]) * rates[order["currency"]]
    total += euros
    by_month[month(order["date"])] += euros
    by_country[customer[1]] += euros
    by_customer[customer[0]] += euros
report = {
    "orders": len(orders) - len(orphans),
    "revenue_eur": round(float(total), 2),
    "by_month": {key: round(float(value), 2) for key, value in sorted(by_month.items())},
    "by_country": {key: round(float(value), 2) for key, value in sorted(by_country.items())},
    "top_customers": [name for name, _ in by_customer.most_common(3)],
    "orphans": sorted(orphans),
}
json.dump(report, open("report.json", "w"), indent=1)
PY
