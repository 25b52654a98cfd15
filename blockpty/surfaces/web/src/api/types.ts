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
  used_ts: number;
  running: BlockSummary | null;
  last: BlockSummary | null;
  needs: string[];
  tty: string | null;
  cols: number;
  rows: number;
  control: "agent" | "user" | "shared";
  control_by: string | null;
  halted: string | null;
  integrity: string;
  /** shell, or what open was given: exec:..., ssh:..., tmux:..., container:... */
  source?: string;
}

export interface BlockSummary {
  block_id: string;
  cmd: string;
  kind: string;
  state: string;
  author: string;
  ts_begin: number;
  ts_end: number | null;
  exit_status: number | null;
  signal: string | null;
}

/** Cells of a screen that look alike. A colour is a number of the palette, or "#rrggbb". */
export interface Run {
  text: string;
  width: number;
  fg?: number | string;
  bg?: number | string;
  bold?: boolean;
  faint?: boolean;
  italic?: boolean;
  reverse?: boolean;
  conceal?: boolean;
  strike?: boolean;
  underline?: string;
}

export interface SearchHit {
  conversation_id: string;
  block_id: string;
  seq: number;
  part: "output" | "command";
  span: [number, number];
  cursor: number;
  snippet: string;
  snippet_span: [number, number];
  cmd: string;
  cwd: string | null;
  author: string;
  state: string;
  exit_status: number | null;
  ts_begin: number;
  duration_ms: number | null;
  elsewhere: string | null;
  /** The number of the line in the output, where it is known. */
  line: number | null;
}

export interface SearchResult {
  hits: SearchHit[];
  next: string | null;
  partial: boolean;
  missing: string[];
}

export interface Timeline {
  begin_ts: number;
  duration_ms: number;
  buckets: number[];
  blocks: {
    block_id: string; cmd: string; kind: string; author: string; state: string; exit_status: number | null;
    signal: string | null; begin_ms: number; end_ms: number | null; cursor: number;
  }[];
  silences: { begin_ms: number; end_ms: number; cursor: number }[];
  resizes: { at_ms: number; cursor: number; cols: number; rows: number }[];
  control: { at_ms: number; cursor: number; state: string; who: string | null }[];
  approvals: { at_ms: number; cursor: number; type: string; id: string; outcome: string | null }[];
}

export interface Overview {
  blocks: { conversation_id: string; block: Block }[];
  statuses: Record<string, number>;
  total_blocks: number;
  partial: boolean;
}

/** A page of blocks, and the number of the event from which they are followed. */
export interface BlocksPage {
  blocks: Block[];
  next_page: number | null;
  next_seq: number;
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
  control_since: number | null;
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
  /** Whether it moved the cursor or used the alternate screen; only where that was measured. */
  screen?: boolean;
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
  /** The rule that approving it always adds to the policy. */
  always: string | null;
}

export interface JournalEvent {
  seq: number;
  ts: number;
  cursor: number;
  type: string;
  [field: string]: unknown;
}
