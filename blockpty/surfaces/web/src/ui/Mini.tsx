import type { Run } from "../api/types.ts";
import { indexed } from "../output/lines.ts";
import { pictures } from "../store/home.ts";

/** A small picture of a screen, as the feed of the home sends it. */
export function Mini({ id }: { id: string }) {
  const picture = pictures.value.get(id);
  if (!picture) return <div class="mini" aria-hidden="true" />;
  const { cols, rows, cursor, lines } = picture;
  return (
    <div class="mini" role="img" aria-label={`Screen of ${id}`} style={{ "--cols": cols, aspectRatio: `${cols * 0.6} / ${rows * 1.3}` }}>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row}>
          {cells(lines.get(row) ?? [], cursor.visible && cursor.y === row ? cursor.x : -1).map(([text, run, isCursor], at) => (
            <span key={at} class={`${classes(run)} ${isCursor ? "inverse" : ""}`} style={colour(run)}>
              {text}
            </span>
          ))}
        </div>
      ))}
    </div>
  );
}

/** Cut the run at the cursor, so that its cell can be drawn for itself. */
function cells(runs: Run[], cursor: number): [string, Run, boolean][] {
  const parts: [string, Run, boolean][] = [];
  let column = 0;
  for (const run of runs) {
    const at = cursor - column;
    if (at >= 0 && at < run.width && run.text.length === run.width) {
      parts.push([run.text.slice(0, at), run, false], [run.text[at], run, true], [run.text.slice(at + 1), run, false]);
    } else parts.push([run.text, run, false]);
    column += run.width;
  }
  if (cursor >= column) parts.push([" ".repeat(cursor - column), BLANK, false], [" ", BLANK, true]);
  return parts;
}

const BLANK: Run = { text: "", width: 0 };

function classes({ fg, bg, bold, faint, italic, reverse, strike, underline, conceal }: Run): string {
  const names = [typeof fg === "number" && fg < 16 ? `a${fg}` : "", typeof bg === "number" && bg < 16 ? `b${bg}` : ""];
  const flags = { bold, faint, italic, strike, inverse: reverse, under: underline !== undefined, conceal };
  for (const [name, on] of Object.entries(flags)) if (on) names.push(name);
  return names.filter(Boolean).join(" ");
}

function colour({ fg }: Run): { color: string } | undefined {
  if (typeof fg === "string") return { color: fg };
  return typeof fg === "number" && fg >= 16 ? { color: indexed(fg) } : undefined;
}
