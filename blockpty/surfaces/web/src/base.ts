// In a variable: the bundler takes `new URL` of `import.meta.url` itself for the address of a file to build in.
const here = import.meta.url;

/**
 * The path below which the server is reached: empty, or what a proxy puts before it. Scripts are one level below it.
 */
export const BASE = new URL("..", here).pathname.slice(0, -1);
