// Runs hook scripts in fresh contexts of Node's `vm`, as often as it is told to, and says how long that took.
// A line of input is { script, ctx, args, times }; a line of output is a number of nanoseconds.
import readline from "node:readline";
import vm from "node:vm";

const compiled = new Map();
const scriptOf = (code) => {
  if (!compiled.has(code)) compiled.set(code, new vm.Script(code));
  return compiled.get(code);
};
const CALL = new vm.Script("JSON.stringify(Create(JSON.parse(__ctx), ...JSON.parse(__args)))");

const once = (code, ctx, args) => {
  const context = vm.createContext({ __ctx: ctx, __args: args });
  scriptOf(code).runInContext(context);
  return CALL.runInContext(context);
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { script, ctx, args, times } = JSON.parse(line);
  const begun = process.hrtime.bigint();
  for (let i = 0; i < times; i++) once(script, ctx, args);
  console.log(String(process.hrtime.bigint() - begun));
}
