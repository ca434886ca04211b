from durations import format, parse

for text, expected in [("45s", 45), ("1h30m", 5400), ("-1h30m", -5400), ("2d 4h", 187200)]:
    print(f"parse({text!r}) = {parse(text)} (expected {expected})")
for seconds, expected in [(45, "45s"), (3600, "1h"), (5400, "1h30m"), (0, "0s")]:
    print(f"format({seconds}) = {format(seconds)!r} (expected {expected!r})")
