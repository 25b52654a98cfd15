/** What the server answers, as far as the page reads it; docs/reference/results.md says what each field means. */
export interface ConversationInfo {
  conversation_id: string;
  live: boolean;
  mode: string;
  shell: string;
  cwd: string | null;
  cursor: number;
  blocks: number;
  created_ts: number;
}

export interface Status {
  conversation_id: string;
  mode: string;
  tty: string | null;
  integrity: string;
  integrity_reason: string | null;
  active_block_id: string | null;
  shell: string;
  cursor: number;
  cols: number;
  rows: number;
  cwd: string | null;
  control: "agent" | "user" | "shared";
  control_by: string | null;
  halted: string | null;
  next_seq: number;
  exit: { status: number | null; signal: string | null } | null;
  lost: string | null;
}

export interface Block {
  block_id: string;
  seq: number;
  kind: string;
  cmd: string;
  cwd: string | null;
  ts_begin: number;
  ts_end: number | null;
  duration_ms: number | null;
  state: string;
  exit_status: number | null;
  signal: string | null;
  span: [number, number | null];
  out_bytes: number;
  author: string;
  degraded: string | null;
}

export interface ApprovalRequest {
  approval_id: string;
  conversation_id: string;
  principal: string;
  operation: string;
  sentence: string;
  text: string | null;
  digest: string;
  rule: string;
  cwd: string | null;
  requested_ts: number;
  expires_ts: number;
  always: unknown;
}

export interface JournalEvent {
  seq: number;
  ts: number;
  cursor: number;
  type: string;
  [field: string]: unknown;
}
