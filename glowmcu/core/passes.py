"""The pass runner: named pure functions, each verified, timed, and printed on demand."""

from __future__ import annotations

import difflib
import time
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from glowmcu.errors import OptionError

T = TypeVar("T")
_fired: ContextVar[Counter[str] | None] = ContextVar("fired", default=None)


def record(rule: str) -> None:
    """Count one application of a rewrite rule for the report of the running pass."""
    counter = _fired.get()
    if counter is not None:
        counter[rule] += 1


@dataclass(frozen=True)
class Pass(Generic[T]):
    """A named function from T to T. A required pass cannot be skipped."""

    name: str
    run: Callable[[T], T]
    required: bool = False

    @property
    def summary(self) -> str:
        """First line of the function's docstring."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


def as_pass(function: Callable[[T], T], *, required: bool = False) -> Pass[T]:
    """Make a Pass of a function; its name is the function's."""
    return Pass(function.__name__, function, required)


@dataclass(frozen=True)
class PassRecord:
    """What one pass did: rule counts, sizes before and after, seconds."""

    name: str
    rules: dict[str, int]
    before: int
    after: int
    seconds: float


@dataclass(frozen=True)
class Trace:
    """What to print and where to stop while passes run; `emit` receives the text."""

    print_after: frozenset[str] = frozenset()
    print_changed: bool = False
    stop_after: str | None = None
    skip: frozenset[str] = frozenset()
    emit: Callable[[str], None] = print


class IllFormedError(AssertionError):
    """An IR broke one of its own rules: a fault in glowmcu, not in the model."""


class Stopped(Exception):
    """Raised after the pass that `--stop-after` names; carries what there is by then."""

    def __init__(self, subject: object) -> None:
        self.subject = subject
        super().__init__("stopped")


@dataclass
class Runner(Generic[T]):
    """Runs passes in order: verify after each, record, print as the trace asks."""

    verify: Callable[[T], None]
    dump: Callable[[T], str]
    size: Callable[[T], int]
    trace: Trace = field(default_factory=Trace)
    records: list[PassRecord] = field(default_factory=list)

    def run(self, subject: T, passes: tuple[Pass[T], ...]) -> T:
        """Run `passes` over `subject`; raise OptionError when a required pass is to be skipped."""
        for item in passes:
            if item.name in self.trace.skip:
                if item.required:
                    raise OptionError(f"pass '{item.name}' is required and cannot be skipped")
                continue
            subject = self._one(subject, item)
        return subject

    def _one(self, before: T, item: Pass[T]) -> T:
        counter: Counter[str] = Counter()
        token = _fired.set(counter)
        start = time.perf_counter()
        try:
            after = item.run(before)
        finally:
            _fired.reset(token)
        self.verify(after)
        seconds = time.perf_counter() - start
        rules = dict(sorted(counter.items()))
        self.records.append(
            PassRecord(item.name, rules, self.size(before), self.size(after), seconds)
        )
        self._print(item.name, before, after)
        if self.trace.stop_after == item.name:
            raise Stopped(after)
        return after

    def _print(self, name: str, before: T, after: T) -> None:
        if name in self.trace.print_after or "all" in self.trace.print_after:
            self.trace.emit(f"// after {name}\n{self.dump(after)}")
        elif self.trace.print_changed:
            old, new = self.dump(before).splitlines(), self.dump(after).splitlines()
            diff = list(
                difflib.unified_diff(old, new, f"before {name}", f"after {name}", "", "", 1)
            )
            if diff:
                self.trace.emit("\n".join(line.rstrip("\n") for line in diff))
