// Hook targets of every form, and of turns: they mark what they saw in `trail`, or speak for or against it.
interface Message { params: { arguments: { trail?: string[] } }; result?: any }

const mark = (message: Message, word: string): Message => {
  const args = message.params.arguments;
  args.trail = [...(args.trail ?? []), word];
  return message;
};

export function mutate(message: Message): Message { return mark(message, "plain"); }
export function envelope(call: { message: Message }): unknown {
  return { ...call, mutated: true, message: mark(call.message, "envelope") };
}
export function validate(message: Message): unknown {
  const trail = message.params.arguments.trail ?? [];
  return trail.length === 2 ? { valid: true } : { valid: false, reason: `seen: ${trail}` };
}
export function no(): unknown { return { accept: false, reason: "first" }; }
export function nor(): unknown { return { accept: false, reason: "second" }; }
export function silent(): void {}
export function boom(): never { throw new Error("broken"); }
export function blank(): unknown { return {}; }
export function left(call: { message: Message }): unknown {
  return { accept: true, mutated: true, reason: "counted anew", message: { result: { structuredContent: { left: 2 } } } };
}
export function loud(turn: { request: any }): unknown {
  const last = turn.request.messages[turn.request.messages.length - 1];
  last.content = last.content.toUpperCase();
  return { accept: true, request: turn.request };
}
export function polite(turn: { request: any }): unknown {
  const last = turn.request.messages[turn.request.messages.length - 1];
  last.content = `${last.content}, please`;
  return { accept: true, request: turn.request };
}
export function judge(call: { message: any }): unknown {
  switch (call.message.params.arguments.prompt) {
    case "same": return { accept: true };
    case "reject": return { accept: false, reason: "not today" };
    case "throw": throw new Error("broken");
    case "loop": for (;;) {}
    case "hoard": for (const all: unknown[] = []; ;) all.push(new Array(1000000).fill(all.length));
    default: return { accept: 1 };
  }
}
