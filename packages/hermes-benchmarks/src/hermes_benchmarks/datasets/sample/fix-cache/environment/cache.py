"""A cache with a size limit and expiry."""

import time


class Cache:
    """The most recently used entries, each for a limited time.

    Args:
        size: How many entries are kept, at least 1 (else ValueError). Setting one more evicts the least recently
            used one; getting and setting an entry both use it. An expired entry is removed in preference to
            evicting one that is alive.
        ttl: Seconds for which an entry lives since it was last set (getting does not prolong it). It is expired
            once `ttl` seconds have passed; None means for ever.
        clock: A function that returns the time in seconds.

    Attributes:
        hits, misses, evicted, expired: Counts. A get of an expired entry is a miss; the entry is removed and counted
            as expired once. None is a value like any other: getting it is a hit.
    """

    def __init__(self, size, ttl=None, clock=time.monotonic, entries={}):
        self.size = size
        self.ttl = ttl
        self.clock = clock
        self.entries = entries
        self.hits = self.misses = self.evicted = self.expired = 0

    def get(self, key, default=None):
        """The value under `key`, or `default`."""
        value, born = self.entries.get(key, (None, 0))
        if not value:
            self.misses += 1
            return default
        if self.ttl and self.clock() - born > self.ttl:
            self.misses += 1
            return default
        self.entries[key] = (value, self.clock())
        self.hits += 1
        return value

    def set(self, key, value):
        """Keep `value` under `key`."""
        if len(self.entries) >= self.size:
            oldest = next(self.entries)
            del self.entries[oldest]
            self.evicted += 1
        self.entries[key] = (value, self.clock())

    def __len__(self):
        """How many entries are alive."""
        return len(self.entries)
