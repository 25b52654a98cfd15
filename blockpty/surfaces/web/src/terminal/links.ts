import type { IBufferCellPosition, Terminal } from "@xterm/xterm";
import { address, addressesIn, LONGEST } from "../output/links.ts";
import { askToOpen } from "../store/asking.ts";

/** Ask a person whether to open what a link on the screen leads to. */
export function openLink(text: string): void {
  const url = address(text);
  if (url) askToOpen(url);
}

/** Make links of the addresses that a screen shows, also of those that go on in the next rows. */
export function linkAddresses(terminal: Terminal): void {
  terminal.registerLinkProvider({
    provideLinks(y, answer) {
      const { active } = terminal.buffer;
      const most = Math.ceil(LONGEST / terminal.cols);
      let row = y - 1;
      while (row > y - 1 - most && active.getLine(row)?.isWrapped) row--;
      let text = "";
      /** Where each character of the text stands. */
      const places: IBufferCellPosition[] = [];
      for (const first = row; row < y + most && (row === first || active.getLine(row)?.isWrapped); row++) {
        const line = active.getLine(row);
        for (let x = 0; line && x < line.length; x++) {
          const cell = line.getCell(x)!;
          if (cell.getWidth() === 0) continue;
          text += cell.getChars() || " ";
          while (places.length < text.length) places.push({ x: x + 1, y: row + 1 });
        }
      }
      const links = addressesIn(text).map(({ link, at }) => {
        const range = { start: places[at], end: places[at + link.length - 1] };
        return { text: link, range, activate: () => openLink(link) };
      });
      answer(links);
    },
  });
}
