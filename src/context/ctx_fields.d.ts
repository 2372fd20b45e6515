  /** Id of the conversation. */
  readonly chat_id: string;
  /** The agent whose hook runs. */
  readonly assistant_id: string;
  readonly locale: string;
  readonly theme: string;
  readonly route: string;
  /** `api` for a turn from outside, `agent` for delegated work. */
  readonly referer: string;
  readonly accept: string;
  readonly client: { readonly type: string; readonly user_agent: string; readonly ip: string };
  /** A copy of the request's metadata; `Create` may return more. */
  readonly metadata: Record<string, any>;
  readonly authorized: Authorized;
  readonly servers: { readonly [name: string]: CtxServer };
  readonly mcp: CtxMcp;
  readonly agent: CtxAgent;
  readonly llm: CtxLlm;
  readonly search: CtxSearch;
  /** Present if the agent's config says `computer: true`. */
  readonly computer?: CtxComputer;
  /** Present if the agent's config names a `workspace`. */
  readonly workspace?: CtxWorkspace;
  readonly memory: CtxMemory;
  readonly trace: CtxTrace;
  /** Ends `ctx`: every operation throws `ERR_RELEASED` from then on. */
  Release(): void;
