/**
 * The queue of outputs that are wanted: few are read at once, and the one that was asked for last comes first, since
 * that is what is being looked at.
 */
const AT_ONCE = 4;
const waiting: (() => void)[] = [];
let reading = 0;
const restful: (() => void)[] = [];

/** Do something when it is its turn. */
export async function inTurn<Result>(what: () => Promise<Result>): Promise<Result> {
  if (reading >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  reading++;
  try {
    return await what();
  } finally {
    reading--;
    if (waiting.length) waiting.pop()!();
    else if (reading === 0) for (const resolve of restful.splice(0)) resolve();
  }
}

/** Wait until nothing is being read, at most so many milliseconds. */
export function atRest(most: number): Promise<void> {
  return new Promise((resolve) => {
    if (reading === 0) resolve();
    else {
      restful.push(resolve);
      setTimeout(resolve, most);
    }
  });
}

/** Wait until what was changed is on the screen; a hidden page has none. */
export const painted = (): Promise<void> =>
  new Promise((resolve) => (document.hidden ? resolve() : requestAnimationFrame(() => setTimeout(resolve))));
