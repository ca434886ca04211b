#!/bin/bash
# Fill the working folder, in an image and in a local sandbox alike.
set -eu
mkdir -p shop
python3 - <<'PY'
import csv
import datetime
import json
import random
import sqlite3

rng = random.Random(99)
NAMES = ["Ada", "Björn", "Chen", "Dolores", "Emeka", "Fatima", "Giulia", "Hiro", "Ines", "Jack", "Kofi", "Lena"]
MONTHS = ["January", "February", "March", "April", "May", "June"]
database = sqlite3.connect("shop/customers.db")
database.execute("create table customers (id integer primary key, name text, country text)")
countries = ["DE", "FR", "JP", "US"]
database.executemany(
    "insert into customers values (?, ?, ?)", [(100 + i, name, countries[i * 7 % 4]) for i, name in enumerate(NAMES)]
)
database.commit()
database.close()


def amount_text(cents):
    whole, rest = divmod(cents, 100)
    style = rng.randrange(3)
    if style == 0:
        return f"{whole}.{rest:02}"
    grouped = f"{whole:,}"
    return f"{grouped}.{rest:02}" if style == 1 else f"{grouped.replace(',', '.')},{rest:02}"


def date_text(day):
    style = rng.randrange(3)
    if style == 0:
        return day.isoformat()
    return day.strftime("%d.%m.%Y") if style == 1 else f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


def row(order, customer):
    day = datetime.date(2024, 1, 1) + datetime.timedelta(days=rng.randrange(181))
    cents = rng.choice([rng.randrange(100, 9000), rng.randrange(100000, 400000)])
    return [order, customer, date_text(day), rng.choice(["EUR", "USD", "JPY", "GBP"]), amount_text(cents)]


rows = []
for number in range(1, 181):
    customer = 100 + rng.randrange(len(NAMES)) if rng.random() > 0.06 else 900 + rng.randrange(9)
    rows.append(row(f"A{number:04}", customer))
for number in rng.sample(range(1, 181), 17):
    old = next(r for r in rows if r[0] == f"A{number:04}")
    rows.insert(rng.randrange(len(rows)), row(old[0], old[1]))
with open("shop/orders.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["order_id", "customer_id", "date", "currency", "amount"])
    writer.writerows(rows)
with open("shop/refunds.jsonl", "w") as file:
    for _ in range(40):
        refund = {"order_id": f"A{rng.randrange(1, 186):04}", "amount": rng.randrange(50, 2000) / 100}
        file.write(json.dumps(refund) + "\n")
with open("shop/rates.json", "w") as file:
    json.dump({"EUR": 1, "USD": 0.9213, "JPY": 0.006141, "GBP": 1.1702}, file)
PY
