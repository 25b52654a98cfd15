/** What the browser keeps for this page. In a frame of another site it may keep nothing: then there is nothing. */
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
    return this.#storage?.getItem(name) ?? null;
  }

  set(name: string, value: string): void {
    this.#storage?.setItem(name, value);
  }

  remove(name: string): void {
    this.#storage?.removeItem(name);
  }
}

/** By this tab, until it is closed. */
export const ofTab = new Kept(() => sessionStorage);
/** By this browser. */
export const ofBrowser = new Kept(() => localStorage);
