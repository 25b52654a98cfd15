import type { Run } from "../api/types.ts";
import { type Look, look } from "../output/colours.ts";
import { indexed } from "../output/lines.ts";
import { pictures } from "../store/home.ts";
import { theme } from "../store/settings.ts";

/** A small picture of a screen, as the feed of the home sends it. */
export function Mini({ id }: { id: string }) {
  const picture = pictures.value.get(id);
  if (!picture) return <div class="mini" aria-hidden="true" />;
  const { cols, rows, cursor, lines } = picture;
  return (
    <div class="mini" role="img" aria-label={`Screen of ${id}`} style={{ "--cols": cols, aspectRatio: `${cols * 0.6} / ${rows * 1.3}` }}>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row}>
          {cells(lines.get(row) ?? [], cursor.visible && cursor.y === row ? cursor.x : -1).map(([text, run, isCursor], at) => {
            const { classes, style } = lookOf(run, isCursor);
            return (
              <span key={at} class={classes} style={style}>
                {text}
              </span>
            );
          })}
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

const named = (colour: number | string | undefined, prefix: string): string => {
  const name = typeof colour === "number" ? indexed(colour) : (colour ?? "");
  return name.startsWith("a") ? prefix + name.slice(1) : name;
};

function lookOf({ fg, bg, bold, faint, italic, reverse, strike, underline, conceal }: Run, isCursor: boolean): Look {
  const flags = [bold, faint, italic, underline !== undefined, (reverse ?? false) !== isCursor, strike];
  const set = flags.reduce((all, one, at) => all | (one ? 1 << at : 0), 0);
  const { classes, style } = look({ front: named(fg, "a"), back: named(bg, "b"), flags: set }, theme.value);
  return { classes: conceal ? `${classes} conceal` : classes, style };
}
