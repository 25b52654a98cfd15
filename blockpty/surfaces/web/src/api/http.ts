import { BASE } from "../base.ts";
import { signedOut, token } from "./auth.ts";

/** An error of the server: its code, what happened, and what to do about it. */
export class Problem extends Error {
  code: string;
  hint: string;

  constructor(code: string, message: string, hint: string) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

/** Call an operation at a path below /v1; raises Problem. A call with a body is a POST. `signal` may give it up. */
export async function call<Result>(path: string, body?: object, signal?: AbortSignal): Promise<Result> {
  const given = token();
  if (given === null) throw new Problem("unauthorized", "not signed in", "");
  const headers: Record<string, string> = { Authorization: `Bearer ${given}` };
  if (body) headers["Content-Type"] = "application/json";
  let answer: Response;
  try {
    const method = body ? "POST" : "GET";
    answer = await fetch(`${BASE}/v1${path}`, { method, headers, body: body ? JSON.stringify(body) : undefined, signal });
  } catch {
    throw new Problem("unreachable", "The server does not answer.", "blockpty serve starts it.");
  }
  if (answer.status === 401) signedOut(given);
  const content = await answer.json().catch(() => ({ ok: false, error: {} }));
  if (content.ok) return content as Result;
  const { code = "error", message = `The server answered with ${answer.status}.`, hint } = content.error ?? {};
  throw new Problem(code, message, hint ?? "");
}

/**
 * Find out whether the token still holds: a browser does not tell with which status the handshake of a WebSocket was
 * refused. `call` forgets a token that does not.
 */
export async function checkToken(): Promise<void> {
  await call("/conversations?filter=%2F").catch(() => undefined);
}

/** Return the path of a conversation's operation. */
export function of(conversation: string, operation: string): string {
  return `/conversations/${encodeURIComponent(conversation)}/${operation}`;
}
