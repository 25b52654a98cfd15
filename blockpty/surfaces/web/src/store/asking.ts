import { signal } from "@preact/signals";
import { visible } from "../words.ts";
import { copy } from "./notice.ts";

/** Something that a person is shown before it happens. */
export interface Asked {
  title: string;
  note?: string;
  text: string;
  actions: { words: string; act: () => void }[];
  /** Where the first action leads, in another tab. */
  href?: string;
}

export const asked = signal<Asked | null>(null);
export const REL = "noopener noreferrer";

export function askPerson(what: Asked): void {
  asked.value = what;
}

/** Say where a link of a program leads before it is followed. */
export function askToOpen({ href, host }: URL): void {
  askPerson({
    title: `Open ${visible(host)}?`,
    note: "A program printed this address. It opens in a new tab, which knows nothing of this page.",
    text: href,
    href,
    actions: [{ words: "Copy", act: () => void copy(href, "Address copied") }],
  });
}
