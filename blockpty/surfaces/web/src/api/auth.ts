import { signal } from "@preact/signals";
import { BASE } from "../base.ts";
import { ofBrowser, ofTab } from "../store/kept.ts";

/**
 * The token of this page: in sessionStorage, since cookies of 127.0.0.1 go to every port, or in localStorage where a
 * person wants to stay signed in. A new tab asks the others for it over a BroadcastChannel.
 */
const KEY = "blockpty.token";

interface Grant {
  token: string;
  scope: "read" | "write" | "admin";
  name: string;
  person: boolean;
}

export const grant = signal<Grant | null>(null);
/** Why a code was not taken; empty when none was refused. */
export const refusal = signal("");
const channel = new BroadcastChannel(`blockpty${BASE}`);

export const token = (): string | null => grant.value?.token ?? null;
export const mayType = (): boolean => grant.value !== null && grant.value.scope !== "read";
export const isPerson = (): boolean => mayType() && grant.value!.person;

function keep(found: Grant, stays = false): void {
  (stays ? ofBrowser : ofTab).set(KEY, JSON.stringify(found));
  grant.value = found;
}

/** Use a token that another page has lent: to look only, and kept nowhere. */
export function useBorrowed(token: string): void {
  grant.value = { token, scope: "read", name: "", person: false };
}

/** Forget a token that holds no more; another one that this page or the browser has got since then stays. */
export function signedOut(refused: string | null): void {
  for (const kept of [ofTab, ofBrowser]) if (stored(kept)?.token === refused) kept.remove(KEY);
  if (refused === token()) grant.value = null;
}

/** Forget the token of this page; tabs that have the same forget it too, or this one would get it back from them. */
export function signOut(): void {
  channel.postMessage({ signedOut: token() });
  for (const kept of [ofTab, ofBrowser]) kept.remove(KEY);
  grant.value = null;
}

/** Change a code into a token, and keep that; other tabs that are signed out get it too. */
export async function redeem(code: string, stays = false): Promise<void> {
  refusal.value = "";
  try {
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(`${BASE}/auth/token`, { method: "POST", headers, body: JSON.stringify({ code }) });
    const content = await answer.json();
    if (content.ok) {
      keep({ token: content.token, scope: content.scope, name: content.name, person: content.person }, stays);
      channel.postMessage(grant.value);
    } else refusal.value = "That code was used already, or is older than a minute.";
  } catch {
    refusal.value = "The server does not answer.";
  }
}

function stored(kept: typeof ofTab): Grant | null {
  try {
    return JSON.parse(kept.get(KEY) ?? "null") as Grant | null;
  } catch {
    return null;
  }
}

/** Sign in with the code of the address, which is removed from it first, or with what this tab or another one has. */
export async function signIn(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  channel.onmessage = ({ data }) => {
    if (data === "wanted" && grant.value) channel.postMessage(grant.value);
    else if (data.signedOut) signedOut(data.signedOut);
    else if (data.token && !grant.value) keep(data as Grant);
  };
  grant.value = stored(ofTab) ?? stored(ofBrowser);
  if (code !== null) await redeem(code);
  else if (!grant.value) channel.postMessage("wanted");
}
