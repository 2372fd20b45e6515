// Runs one hook script in this process: { script, ctx, args } on standard input, the result as JSON on standard output.
const { script, ctx, args } = JSON.parse(await new Response(Deno.stdin.readable).text());
const hook = new Function(`${script}\nreturn Create;`)();
console.log(JSON.stringify(hook(JSON.parse(ctx), ...JSON.parse(args))) ?? "");
