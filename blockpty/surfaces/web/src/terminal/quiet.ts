import type { Terminal } from "@xterm/xterm";

/**
 * Have the page's terminal answer nothing: the engine has answered queries already, and a second answer would be typed
 * into the program. Clipboards, notifications and images of programs are dropped; the title is text of the page.
 */
export function silence(terminal: Terminal): void {
  const { parser } = terminal;
  const taken = () => true;
  for (const final of ["c", "n", "x"]) parser.registerCsiHandler({ final }, taken); // DA1, DSR, DECREQTPARM
  for (const prefix of [">", "="]) parser.registerCsiHandler({ prefix, final: "c" }, taken); // DA2, DA3
  for (const prefix of ["?", ">"]) parser.registerCsiHandler({ prefix, final: "n" }, taken); // DSR, key options
  parser.registerCsiHandler({ prefix: ">", final: "q" }, taken); // XTVERSION
  parser.registerCsiHandler({ prefix: "?", final: "u" }, taken); // kitty's keyboard query
  parser.registerCsiHandler({ intermediates: "$", final: "p" }, taken); // DECRQM
  parser.registerCsiHandler({ prefix: "?", intermediates: "$", final: "p" }, taken);
  parser.registerCsiHandler({ intermediates: "*", final: "y" }, taken); // checksum of an area
  parser.registerCsiHandler({ intermediates: "$", final: "w" }, taken); // DECRQPSR
  parser.registerCsiHandler({ intermediates: "$", final: "u" }, taken); // DECRQTSR
  parser.registerCsiHandler({ final: "t" }, taken); // window reports and their manipulation
  parser.registerEscHandler({ final: "Z" }, taken); // DECID
  parser.registerDcsHandler({ intermediates: "$", final: "q" }, taken); // DECRQSS
  parser.registerDcsHandler({ intermediates: "+", final: "q" }, taken); // XTGETTCAP
  for (const number of [1, 4, 9, 10, 11, 12, 50, 52, 99, 104, 110, 111, 112, 777, 1337])
    parser.registerOscHandler(number, taken);
}
