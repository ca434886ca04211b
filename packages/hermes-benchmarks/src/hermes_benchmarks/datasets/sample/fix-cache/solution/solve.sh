#!/bin/bash
set -eu
python3 - <<'PY'
from pathlib import Path

path = Path("store/cache.py")
head = path.read_text().split("    def __init__")[0]
path.write_text(head + '''    def __init__(self, size, ttl=None, clock=time.monotonic, entries=None):
        if size < 1:
            raise ValueError("a cache keeps at least one entry")
        self.size = size
        self.ttl = ttl
        self.clock = clock
        self.entries = {} if entries is None else entries
        self.hits = self.misses = self.evicted = self.expired = 0

    def get(self, key, default=None):
        """The value under `key`, or `default`."""
        if key in self.entries and self._is_old(key):
            self._expire(key)
        if key not in self.entries:
            self.misses += 1
            return default
        self.entries[key] = self.entries.pop(key)
        self.hits += 1
        return self.entries[key][0]

    def set(self, key, value):
        """Keep `value` under `key`."""
        self._drop_old()
        self.entries.pop(key, None)
        if len(self.entries) >= self.size:
            del self.entries[next(iter(self.entries))]
            self.evicted += 1
        self.entries[key] = (value, self.clock())

    def __len__(self):
        """How many entries are alive."""
        self._drop_old()
        return len(self.entries)

    def _is_old(self, key):
        return self.ttl is not None and self.clock() - self.entries[key][1] >= self.ttl

    def _expire(self, key):
        del self.entries[key]
        self.expired += 1

    def _drop_old(self):
        for key in [key for key in self.entries if self._is_old(key)]:
            self._expire(key)
''')
PY
