import { BASE } from "../base.ts";

/**
 * What the browser keeps for this page. In a frame of another site it may keep nothing: then there is nothing.
 * Names have the path of the server, since a proxy may have several at one origin.
 */
class Kept {
  #storage: Storage | null;

  constructor(storage: () => Storage) {
    try {
      this.#storage = storage();
    } catch {
      this.#storage = null;
    }
  }

  get(name: string): string | null {
    return this.#storage?.getItem(name + BASE) ?? null;
  }

  set(name: string, value: string): void {
    this.#storage?.setItem(name + BASE, value);
  }

  remove(name: string): void {
    this.#storage?.removeItem(name + BASE);
  }
}

/** By this tab, until it is closed. */
export const ofTab = new Kept(() => sessionStorage);
/** By this browser. */
export const ofBrowser = new Kept(() => localStorage);
