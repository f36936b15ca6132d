"""Run work on all cores, with results in order and bounded memory."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future, ThreadPoolExecutor

    Item = TypeVar("Item")
    Result = TypeVar("Result")

_here = threading.local()


def in_order(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    at_most: int | None = None,
    ahead: int = 8,
) -> Iterator[Result]:
    """Run the work on each item, in threads, and yield the results in the order of the items.

    Items are drawn as threads become free, and the number of waiting results is bounded. `at_most`
    is the number of items, if known: one item needs no thread. `ahead` is how many results a
    thread may be ahead of the caller. Nested calls run serially.
    """
    threads = _cores() if at_most is None else min(at_most, _cores())
    pool = _pool(threads) if threads > 1 and not hasattr(_here, "busy") else None
    if pool is None:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > ahead * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # also when interrupted, or when the caller stops early: start no further item
        pool.shutdown(cancel_futures=True)


def free_cores() -> int:
    """Return how many threads may run here: one inside `in_order`, otherwise all cores."""
    return 1 if hasattr(_here, "busy") else _cores()


def _pool(threads: int) -> ThreadPoolExecutor | None:
    """Start threads; return None if the interpreter is shutting down and starts no more."""
    try:
        from concurrent.futures import ThreadPoolExecutor  # slow to import

        pool = ThreadPoolExecutor(threads, initializer=lambda: setattr(_here, "busy", True))
        pool.submit(int)
    except RuntimeError:
        return None
    return pool


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
