"""The manifest: what it says of the operations is what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty import Client, Engine
from blockpty.errors import BadRequest
from blockpty.model.events import Event
from blockpty.ops.manifest import manifest, manifest_entry
from blockpty.ops.table import OPERATIONS


def test_it_has_the_operations_of_the_table_in_its_order() -> None:
    assert list(manifest()) == list(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_line_is_that_of_the_table(name: str) -> None:
    line, operation = manifest_entry(name), OPERATIONS[name]
    assert (line.name, line.effect, line.shape) == (name, operation.effect, operation.shape)
    assert (line.route, line.positional) == (operation.route, operation.positional)
    assert line.doc.split() == operation.doc.split()
    assert line.result is (None if operation.result is Event else operation.result)
    fields = operation.request.model_fields
    assert list(line.parameters) == list(fields)
    assert line.required == {parameter for parameter, field in fields.items() if field.is_required()}
    for parameter, field in fields.items():
        schema = line.parameters[parameter]
        assert schema["description"] == " ".join((field.description or "").split())
        assert schema.get("default") == (None if field.is_required() else field.default)


def test_an_operation_that_does_not_exist() -> None:
    with pytest.raises(BadRequest, match="no operation is called 'dance'"):
        manifest_entry("dance")


@pytest.mark.parametrize("owner", [Engine, Client])
def test_engines_and_clients_offer_their_operations_and_no_internals(owner: type, home: Path) -> None:
    shown = [name for name in dir(owner(home)) if not name.startswith("__")]
    routes = {name: entry.route[1] for name, entry in manifest().items()}
    operations = {name for name, route in routes.items() if "{conversation_id}" not in route}
    assert set(shown) == operations | {"verify", "repair", "seal", "close", "conversation", "home"}
