// Hooks of the host whose outcome the client asks for: by its name, or by its arguments.
interface Session { sessionId: string; _meta: Record<string, unknown> }
interface Envelope { message: { params: { arguments: any }; result?: any } }

function hoard(): never {
  const all: unknown[] = [];
  for (;;) all.push(new Array(1000000).fill(all.length));
}

function act(how: string, change: () => unknown): unknown {
  switch (how) {
    case "throw": throw new Error("broken");
    case "loop": for (;;) {}
    case "hoard": return hoard();
    case "nonsense": return { accept: "perhaps" };
    case "reject": return { accept: false, reason: "not today" };
    case "change": return change();
  }
  return { accept: true };
}

export function begins(session: Session) {
  return act(session.sessionId, () => ({ _meta: { plan: "pro" } }));
}

export function asks({ message }: Envelope) {
  return act(message.params.arguments.how, () => {
    message.params.arguments.touched = true;
    return { accept: true, mutated: true, message };
  });
}

export function answers({ message }: Envelope) {
  return act(message.params.arguments.how, () => {
    message.result.structuredContent.left = 2;
    return { accept: true, mutated: true, message };
  });
}
