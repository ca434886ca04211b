"""Use a cache with a clock of our own, and say what happened."""

from store.cache import Cache


def main():
    now = 0
    cache = Cache(size=3, ttl=10, clock=lambda: now)
    for key in ("a", "b", "c"):
        cache.get(key)
        cache.set(key, key.upper())
    cache.get("a")
    cache.set("b", "B2")
    cache.set("d", 0)
    for key in ("a", "b", "d"):
        cache.get(key)
    now = 5
    cache.set("a", None)
    now = 10
    cache.get("b")
    for key in ("a", "a"):
        cache.get(key)
    print(f"hits {cache.hits} misses {cache.misses} evicted {cache.evicted} expired {cache.expired}")


if __name__ == "__main__":
    main()
