/** Links in outputs: only to the web, and shown as what is opened. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PLAIN } from "../../../../blockpty/surfaces/web/src/output/lines.ts";
import { address, withLinks } from "../../../../blockpty/surfaces/web/src/output/links.ts";

const marked = (text: string) =>
  withLinks([{ text, style: PLAIN }]).filter(({ style }) => style.link).map(({ text, style }) => [text, style.link]);

test("addresses are found in a text", () => {
  const cases: Record<string, string[]> = {
    "see https://example.org/a?b=1#c.": ["https://example.org/a?b=1#c"],
    "(https://example.org/x_(y)) and http://a.b,": ["https://example.org/x_(y)", "http://a.b"],
    "'https://example.org' \"http://q.org\"": ["https://example.org", "http://q.org"],
    "HTTPS://EXAMPLE.ORG/A": ["HTTPS://EXAMPLE.ORG/A"],
    "javascript://example.org/%0aalert(1) file:///etc/passwd ftp://a.b data:text/html,x": [],
    "xhttps://no.word https:// http:///": [],
    "no/link": [],
  };
  for (const [text, links] of Object.entries(cases)) assert.deepEqual(marked(text), links.map((one) => [one, one]), text);
});

test("a change of colour within an address does not divide it, and nothing is lost", () => {
  const red = { ...PLAIN, front: "a1" };
  const pieces = withLinks([{ text: "at https://exa", style: PLAIN }, { text: "mple.org/x now", style: red }]);
  assert.equal(pieces.map(({ text }) => text).join(""), "at https://example.org/x now");
  const links = pieces.filter(({ style }) => style.link);
  assert.deepEqual(links.map(({ text, style }) => [text, style.front, style.link]), [
    ["https://exa", "", "https://example.org/x"], ["mple.org/x", "a1", "https://example.org/x"],
  ]);
});

test("a program's own link stays", () => {
  const given = { ...PLAIN, link: "https://given.example" };
  assert.deepEqual(withLinks([{ text: "https://shown.example", style: given }]).map(({ style }) => style.link), ["https://given.example"]);
});

test("what is opened is shown: other scripts in punycode, and nothing but the web", () => {
  assert.equal(address("https://аpple.example/")?.host, "xn--pple-43d.example");
  for (const wrong of ["javascript:alert(1)", "file:///etc/passwd", "data:,x", "//example.org", "https://", `https://x/${"y".repeat(2000)}`, ""])
    assert.equal(address(wrong), null, wrong);
});
