/** Return the first of some elements that stand below one another that reaches below a height of the window. */
export function reachingBelow(elements: HTMLCollection, y: number): HTMLElement | undefined {
  let [low, high] = [0, elements.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (elements[middle].getBoundingClientRect().bottom > y) high = middle;
    else low = middle + 1;
  }
  return elements[low] as HTMLElement | undefined;
}
