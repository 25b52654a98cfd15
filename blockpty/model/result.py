"""The base of all results: their JSON form, there and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Self

from msgspec import Struct

# How a field of this type comes back from JSON; all others are the same there.
REVIVED: Final[dict[str, Callable[[Any], Any]]] = {
    "tuple[int, int]": tuple,
    "tuple[int, int] | None": lambda value: None if value is None else tuple(value),
}


class Result(Struct, frozen=True):
    """Base of all results: `to_dict` gives the JSON form with `ok: true`."""

    # Fields that the JSON form has only where they are not None.
    LEFT_OUT: ClassVar[frozenset[str]] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        content = {"ok": True, **_plain(self)}
        for name in self.LEFT_OUT:
            if content[name] is None:
                del content[name]
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Build a result from its JSON form; of another version it may have more fields, and lack new ones."""
        types = cls.__annotations__
        known = [name for name in cls.__struct_fields__ if name in content]
        return cls(**{name: REVIVED.get(types.get(name, ""), _same)(content[name]) for name in known})


def _same(value: Any) -> Any:
    return value


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict") and not isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
