// Looks at lists of tools.

interface Answer { message: { result: { tools: { name: string }[] } } }

/** Takes the tools out whose name begins with an underscore. */
export function hide(answer: Answer) {
  const message = answer.message;
  message.result.tools = message.result.tools.filter((tool) => !tool.name.startsWith("_"));
  return { accept: true, mutated: true, message, reason: "internal tools" };
}

/** Takes `list_servers` out. */
export function hide_servers(answer: Answer) {
  const message = answer.message;
  message.result.tools = message.result.tools.filter((tool) => tool.name !== "list_servers");
  return { accept: true, mutated: true, message };
}

/** Lets no list pass. */
export function refuse() {
  return { accept: false, reason: "not listed here" };
}
