export async function Next() {
  return { data: await import("./counter.ts") };
}
