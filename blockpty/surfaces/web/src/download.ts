const SAVED_MS = 60_000;

/** Have the browser save a text as a file. */
export function download(name: string, text: string, type = "text/plain"): void {
  const href = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  Object.assign(link, { href, download: name.replace(/[^\w.-]/g, "_") }).click();
  setTimeout(() => URL.revokeObjectURL(href), SAVED_MS);
}
