import { call, of } from "../api/http.ts";
import { download } from "../download.ts";
import { attempt, say } from "./notice.ts";

/** What is done with a conversation as a whole; said where it is not seen. */
const MOST = 64 * 1024 * 1024;

export async function exportConversation(id: string): Promise<void> {
  await attempt(async () => {
    const { data, path } = await call<{ data: string | null; path: string | null }>(of(id, "export"), { format: "html", max_bytes: MOST });
    // Of a very large one the server keeps the file.
    if (data === null) say(`The export is ${path} on the machine of the server.`);
    else download(`${id}.html`, data, "text/html");
  });
}

export async function closeConversation(id: string): Promise<void> {
  if (await attempt(() => call(of(id, "close"), {}))) say("Closed");
}

export async function killShell(id: string): Promise<void> {
  if (await attempt(() => call(of(id, "kill"), {}))) say("The shell was killed");
}
