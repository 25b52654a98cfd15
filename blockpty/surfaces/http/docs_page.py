"""Page `/docs`: the operations over HTTP for a person, made from the OpenAPI document, without any script."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

from blockpty.surfaces.http.openapi import openapi

_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "code,pre{font:13px/1.5 ui-monospace,monospace}h2{margin-top:2.5rem}pre{overflow-x:auto}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}"
    "nav{columns:14rem}nav a{display:block}.method{opacity:.7;margin-right:.5rem}"
)
DOCS_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        f"style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_USE: Final = """curl -H "Authorization: Bearer $BLOCKPTY_TOKEN" \\
  --json '{"command": "echo hello"}' http://127.0.0.1:7717/v1/conversations/c1/run"""


@functools.cache
def docs_page() -> str:
    """Return the page; nothing of a home or a request is in it."""
    document = openapi()
    operations = [
        (path, method.upper(), operation)
        for path, ways in document["paths"].items()
        for method, operation in ways.items()
    ]
    names = [escape(operation["operationId"]) for *_, operation in operations]
    links = "".join(f'<a href="#{name}">{name}</a>' for name in names)
    title = f"{document['info']['title']} {document['info']['version']}"
    return "".join(
        [
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}: HTTP</title>',
            f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>',
            f"<h1>{escape(title)} over HTTP</h1><p>{escape(document['info']['description'])}</p>",
            "<p>Send the token with each request. This is the content of <code>/openapi.json</code>, from which "
            f"clients can be generated.</p><pre>{escape(_USE)}</pre><nav>{links}</nav>",
            *(part for path, method, operation in operations for part in _section(path, method, operation)),
            "</html>",
        ]
    )


def _section(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    name = escape(operation["operationId"])
    yield f'<h2 id="{name}">{name}</h2><p><code><span class="method">{method}</span>{escape(path)}</code></p>'
    for paragraph in operation["description"].split("\n\n"):
        yield f"<p>{escape(paragraph)}</p>"
    rows = [
        (one["name"], one["required"], one["schema"], one["description"] or one["schema"].get("description", ""))
        for one in operation["parameters"]
    ]
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    rows += [
        (field, field in content.get("required", ()), schema, schema.get("description", ""))
        for field, schema in content.get("properties", {}).items()
    ]
    if rows:
        yield "<table><tr><th>parameter</th><th>kind</th><th></th></tr>"
        for field, required, schema, text in rows:
            default = schema.get("default")
            facts = ["required"] if required else [] if default is None else [f"default {default}"]
            said = " ".join([text, *(f"({fact})" for fact in facts)])
            cells = (f"<code>{escape(field)}</code>", escape(_kind(schema)), escape(said))
            yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        yield "</table>"
    answer = operation["responses"]["200"]["content"]
    for kind, described in answer.items():
        result = described["schema"].get("$ref", "").rpartition("/")[2]
        yield f"<p>Answers <code>{escape(kind)}</code>{f': {escape(result)}' if result else ''}.</p>"


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_kind(one) for one in schema["anyOf"] if one != {"type": "null"}))
    return str(schema.get("type", schema.get("$ref", "").rpartition("/")[2]))
