"""A property that is worked out once per instance, without a lock.

`functools.cached_property` of Python 3.11 holds one lock per class while it works: a thread that plans
a long text would stop the event loop at the same property of a short one. Here two threads may both do
the work, and either's result is right, since everything in the planner is pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801 - a decorator, named as one
    """Decorates a method without arguments; its result is kept in the instance's `__dict__`."""

    def __init__(self, work: Callable[[Any], T]) -> None:
        self._work = work
        self._name = work.__name__
        self.__doc__ = work.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> once[T] | T:
        """The result; Python finds it in the `__dict__` itself from the second time on."""
        if instance is None:
            return self
        result = instance.__dict__[self._name] = self._work(instance)
        return result
