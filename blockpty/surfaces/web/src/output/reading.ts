/**
 * The queue of outputs that are wanted: few are read at once, and the one that was asked for last comes first, since
 * that is what is being looked at.
 */
const AT_ONCE = 4;
/** How long others wait for outputs that are slow to come. */
const LONGEST_MS = 500;
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

/** Wait until nothing is being read, but not for long. */
function atRest(): Promise<void> {
  return new Promise((resolve) => {
    if (reading === 0) resolve();
    else {
      restful.push(resolve);
      setTimeout(resolve, LONGEST_MS);
    }
  });
}

/** Wait until what was changed is on the screen; a hidden page has none. */
const painted = (): Promise<void> =>
  new Promise((resolve) => (document.hidden ? resolve() : requestAnimationFrame(() => setTimeout(resolve))));

/** Wait until what was changed is on the screen, and the outputs that it asks for as well. */
export const outputsPainted = (): Promise<void> => painted().then(atRest).then(painted);
