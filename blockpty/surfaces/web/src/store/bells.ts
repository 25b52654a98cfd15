import { signal } from "@preact/signals";

/** Conversations in which a program has rung the bell, until a person does something in them. */
export const rung = signal<ReadonlySet<string>>(new Set());

export function ring(conversation: string): void {
  if (!rung.peek().has(conversation)) rung.value = new Set([...rung.peek(), conversation]);
}

export function hush(conversation: string): void {
  if (rung.peek().has(conversation)) rung.value = new Set([...rung.peek()].filter((one) => one !== conversation));
}
