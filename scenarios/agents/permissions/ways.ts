// Every way by which a script may try to get at what its agent may not.
const fails = (work: () => unknown): object => {
  try {
    return { answer: work() };
  } catch (e: any) {
    return { code: e.code, message: e.message };
  }
};

export function Next(ctx: Ctx) {
  return {
    data: {
      tools: ctx.mcp.ListTools("bank").tools.map((tool) => tool.name),
      prompts: ctx.mcp.ListPrompts("greenroom.prompts").prompts.map((prompt) => prompt.name),
      denied: [
        fails(() => ctx.mcp.CallTool("bank", "pay")),
        fails(() => ctx.call("bank/pay")),
        fails(() => ctx.servers.bank.call("pay")),
        fails(() => ctx.call("nanobot.system/bash", { command: "uptime" })),
        fails(() => ctx.prompt("secret")),
        fails(() => ctx.mcp.ReadResource("bank", "payroll://march")),
        fails(() => ctx.call("payer", "pay")),
        // The function of a script server has its caller's permissions.
        fails(() => ctx.call("tools/total", { skus: [1] })),
      ],
      batch: ctx.mcp.All([{ mcp: "bank", tool: "pay" }]),
      agent: ctx.agent.Call("payer", [{ role: "user", content: "pay" }]),
    },
  };
}
