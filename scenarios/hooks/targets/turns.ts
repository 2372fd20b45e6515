// Hook targets of an agent's turns whose outcome the turn asks for: in its instructions (config) or by its last user message.
interface Turn { agent?: any; request?: any; response?: any }

function asked(turn: Turn): string {
  if (turn.agent) return turn.agent.instructions;
  return turn.request.messages.findLast((message: any) => message.role === "user").content;
}

function hoard(): never {
  const all: unknown[] = [];
  for (;;) all.push(new Array(1000000).fill(all.length));
}

export function act(turn: Turn): unknown {
  switch (asked(turn)) {
    case "same": return { accept: true };
    case "throw": throw new Error("broken");
    case "loop": for (;;) {}
    case "hoard": return hoard();
    case "nonsense": return { count: 1n };
    case "reject": return { accept: false, reason: "not today" };
    case "change":
      if (turn.agent) turn.agent.temperature = 0.5;
      else if (turn.response) turn.response.message.content = "touched";
      else turn.request.temperature = 0.5;
      return { accept: true, ...turn };
  }
}
