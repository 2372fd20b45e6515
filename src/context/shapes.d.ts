// Declarations of what a hook script of Greenroom sees. Generated: `greenroom types > greenroom.d.ts`.
// Put the file beside your scripts; nothing has to be imported.

type Role = "developer" | "system" | "user" | "assistant" | "tool";

type ContentPart =
  | { type: "text"; text: string }
  | { type: "image_url"; image_url: { url: string; detail?: "auto" | "low" | "high" } }
  | { type: "input_audio"; input_audio: { data: string; format: string } }
  | { type: "file"; file: { url: string; filename?: string } }
  | { type: "data"; data: object };

interface ToolCall {
  id: string;
  type: "function";
  /** `arguments` is JSON text, as the model wrote it. */
  function: { name: string; arguments?: string };
}

interface ChatMessage {
  role: Role;
  content?: string | ContentPart[] | null;
  name?: string;
  tool_call_id?: string;
  tool_calls?: ToolCall[];
  reasoning_content?: string;
  refusal?: string;
}

interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

/** A completion, in the shape of Chat Completions. */
interface CompletionResponse {
  model: string;
  role: string;
  content: string | ContentPart[] | null;
  tool_calls?: ToolCall[];
  /** `stop`, `length`, `tool_calls`, …; `stopped` if `onChunk` ended it. */
  finish_reason: string;
  usage?: Usage;
}

interface ToolCallResponse {
  toolcall_id: string;
  server: string;
  tool: string;
  /** JSON text, as the model wrote it. */
  arguments?: string;
  result?: any;
  error?: string;
}

/** What a hook gets as its last argument. */
interface HookOptions {
  connector?: string | null;
  metadata?: Record<string, any>;
}

interface McpServerRef {
  server_id: string;
  /** Only these tools. */
  tools?: string[];
}

/** Hands the turn to another agent. */
interface DelegateConfig {
  agent_id: string;
  messages: ChatMessage[];
  options?: { connector?: string; metadata?: Record<string, any> };
}

/** What `Create` may return; nothing means "go on as configured". */
interface HookCreateResponse {
  /** The conversation for the model; an empty array is "not set". */
  messages?: ChatMessage[];
  temperature?: number;
  max_tokens?: number;
  max_completion_tokens?: number;
  /** Replaces the agent's servers for this turn. */
  mcp_servers?: McpServerRef[];
  connector?: string;
  /** Merged into `ctx.metadata`. */
  metadata?: Record<string, any>;
  delegate?: DelegateConfig;
}

interface NextHookPayload {
  messages: ChatMessage[];
  completion: CompletionResponse | null;
  tools: ToolCallResponse[] | null;
  /** Why the turn failed; empty if it did not. */
  error: string;
  error_code: string;
}

/** What `Next` may return; nothing means "the model's answer stands". */
interface NextHookResponse {
  delegate?: DelegateConfig;
  data?: any;
}

interface AgentResponse {
  completion: CompletionResponse | null;
  next: any;
  tools: ToolCallResponse[];
}

interface Authorized {
  user_id?: string;
  team_id?: string;
  [key: string]: any;
}

/** A message of the client's stream. */
interface OutMessage {
  type: string;
  props?: Record<string, any>;
  message_id?: string;
  chunk_id?: string;
  block_id?: string;
  thread_id?: string;
  delta?: boolean;
  delta_path?: string;
  delta_action?: "append" | "replace" | "merge" | "set";
  metadata?: Record<string, any>;
}

/** What `call` gives. */
interface CallOutcome {
  content: any[];
  isError: boolean;
  structuredContent?: any;
  output?: any;
}

interface Tool {
  name: string;
  description?: string;
  inputSchema: object;
  [key: string]: any;
}
interface ToolRequest {
  name: string;
  arguments?: object;
}
interface Resource {
  uri: string;
  name: string;
  [key: string]: any;
}
interface ResourceContent {
  uri: string;
  mimeType?: string;
  text?: string;
  blob?: string;
  [key: string]: any;
}
interface Prompt {
  name: string;
  description?: string;
  [key: string]: any;
}
interface PromptMessage {
  role: "user" | "assistant";
  content: any;
}

/** What every entry of a batch has; entries stand in the order of the requests. */
interface BatchEntry {
  /** Why it failed; absent for a success. */
  error?: string;
  /** Stable code of the failure; `CANCELLED` if another request won. */
  code?: string;
  /** `true` for the request that ended `Any` or `Race`. */
  winner?: true;
}
interface BatchOptions {
  /** Hears each piece, with the name and the place of its request. `false` or a number other than 0 stops that one. */
  onChunk?: (name: string, index: number, message: OutMessage) => unknown;
}
interface McpRequest {
  mcp: string;
  tool: string;
  arguments?: object;
}
interface McpResult extends BatchEntry {
  mcp: string;
  tool: string;
  result?: any;
}
interface AgentOptions {
  connector?: string;
  metadata?: Record<string, any>;
}
interface AgentRequest {
  agent: string;
  messages: ChatMessage[];
  options?: AgentOptions;
}
interface AgentResult extends BatchEntry {
  agent_id: string;
  content?: string;
  response?: AgentResponse;
}
interface LlmOptions {
  temperature?: number;
  max_tokens?: number;
  [parameter: string]: any;
}
interface LlmRequest {
  connector: string;
  messages: ChatMessage[];
  options?: LlmOptions;
}
interface LlmResult extends BatchEntry {
  connector: string;
  content?: string;
  response?: CompletionResponse;
  /** `onChunk` ended it. */
  stopped?: boolean;
}

interface WebSearchOptions {
  limit?: number;
  sites?: string[];
  time_range?: "day" | "week" | "month" | "year";
  rerank?: { top_n?: number };
}
interface KbSearchOptions {
  collections?: string[];
  /** Only hits with at least this score, from 0 to 1. */
  threshold?: number;
  limit?: number;
  rerank?: { top_n?: number };
}
interface DbSearchOptions {
  models?: string[];
  select?: string[];
  wheres?: { column: string; op?: "=" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "like"; value: any }[];
  orders?: { column: string; desc?: boolean }[];
  limit?: number;
  rerank?: { top_n?: number };
}
type SearchRequest = { query: string } & (
  | ({ type: "web" } & WebSearchOptions)
  | ({ type: "kb" } & KbSearchOptions)
  | ({ type: "db" } & DbSearchOptions)
);
interface SearchItem {
  citation_id: string;
  source: "hook";
  weight: number;
  type: "web" | "kb" | "db";
  score?: number;
  title?: string;
  content: string;
  url?: string;
  document_id?: string;
  collection?: string;
  model?: string;
  record_id?: any;
  data?: Record<string, any>;
  metadata?: Record<string, any>;
}
interface SearchResult extends BatchEntry {
  type: "web" | "kb" | "db";
  query: string;
  source: "hook";
  items: SearchItem[];
  total: number;
  duration_ms: number;
}
interface ComputerInfo {
  kind: string;
  node_id: string;
  tai_id: string;
  status: string;
  system: { os: string; arch: string; hostname: string; num_cpu: number; shell: string };
}
interface FileStat {
  name: string;
  size: number;
  is_dir: boolean;
  mode: number;
  mtime: number;
}

interface TraceOption {
  label?: string;
  type?: string;
  icon?: string;
  description?: string;
}

interface CtxMemory {
  readonly context: MemorySpace;
  readonly chat: MemorySpace;
  /** Present if `ctx.authorized.user_id` is known. */
  readonly user?: MemorySpace;
  /** Present if `ctx.authorized.team_id` is known. */
  readonly team?: MemorySpace;
}

interface Console {
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  debug(...values: unknown[]): void;
}
/** Writes `console` events into the trace. */
declare var console: Console;

/** The hook before the model is asked. */
type CreateHook = (
  ctx: Ctx,
  messages: ChatMessage[],
  options: HookOptions,
) => HookCreateResponse | null | undefined | void | Promise<HookCreateResponse | null | undefined | void>;

/** The hook after the model has answered, or failed. */
type NextHook = (
  ctx: Ctx,
  payload: NextHookPayload,
  options: HookOptions,
) => NextHookResponse | null | undefined | void | Promise<NextHookResponse | null | undefined | void>;
