// Hook targets whose outcome the call asks for: nanobot's envelope in and out.
interface Message { params: { arguments?: any }; result?: any; error?: any }
interface Envelope { accept: boolean; mutated: boolean; reason: string; message: Message }

/** A hook on a hook finds the message in its call's arguments. */
function asked(message: Message): string {
  let args = message.params.arguments;
  while (args && args.how === undefined) args = (args.message ?? args).params?.arguments;
  return args?.how ?? "";
}

function hoard(): never {
  const all: unknown[] = [];
  for (;;) all.push(new Array(1000000).fill(all.length));
}

function act(hook: string, envelope: Envelope): unknown {
  const message = envelope.message;
  switch (asked(message)) {
    case `${hook}:throw`: throw new Error("broken");
    case `${hook}:loop`: for (;;) {}
    case `${hook}:hoard`: return hoard();
    case `${hook}:nonsense`: return { accept: "perhaps" };
    case `${hook}:silent`: return {};
    case `${hook}:reject`: return { accept: false, reason: "not today" };
    case `${hook}:change`:
      (message.result ?? message.error ?? message.params.arguments).touched = true;
      return { accept: true, mutated: true, message, reason: "touched" };
  }
  return { accept: true };
}

export function gate(envelope: Envelope) { return act("gate", envelope); }
export function fix(envelope: Envelope) { return act("fix", envelope); }
export function judge(envelope: Envelope) { return act("judge", envelope); }

