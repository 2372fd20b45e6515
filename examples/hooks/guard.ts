// A script server: each exported function is a tool, and so can be a hook target (`guard/known_zones`).
const zones: string[] = ["UTC", "Europe/Oslo", "Europe/Rome", "Asia/Tokyo"];

export function known_zones(call: { message: { params: { arguments: Record<string, string> } } }) {
  const args = call.message.params.arguments;
  const unknown = [args.source_timezone, args.target_timezone].filter((zone) => !zones.includes(zone));
  return unknown.length === 0 ? { accept: true } : { accept: false, reason: `unknown zones: ${unknown.join(", ")}` };
}
