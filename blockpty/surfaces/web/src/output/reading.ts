/**
 * The queue of outputs that are wanted: few are read at once, and the one that was asked for last comes first, since
 * that is what is being looked at.
 */
const AT_ONCE = 4;
/** How long others wait for outputs that are slow to come. */
const LONGEST_MS = 500;
const waiting: { resolve: (isTurn: boolean) => void; isWanted: () => boolean }[] = [];
/** Once so many wait, those that are not wanted any more are looked for. */
const MANY = 64;
let most = MANY;
let reading = 0;
const restful: (() => void)[] = [];

/** Do something when it is its turn, if it is still wanted then. */
export async function inTurn(what: () => Promise<unknown>, isWanted: () => boolean): Promise<void> {
  if (reading >= AT_ONCE && !(await new Promise<boolean>((resolve) => wait({ resolve, isWanted })))) return;
  reading++;
  try {
    await what();
  } finally {
    reading--;
    next();
  }
}

function wait(one: (typeof waiting)[number]): void {
  if (waiting.length >= most) {
    for (const other of waiting.splice(0)) {
      if (other.isWanted()) waiting.push(other);
      else other.resolve(false);
    }
    most = Math.max(MANY, 2 * waiting.length);
  }
  waiting.push(one);
}

function next(): void {
  for (let one = waiting.pop(); one; one = waiting.pop()) {
    const isTurn = one.isWanted();
    one.resolve(isTurn);
    if (isTurn) return;
  }
  if (reading === 0) for (const resolve of restful.splice(0)) resolve();
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
