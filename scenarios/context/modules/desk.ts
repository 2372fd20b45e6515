import { double, load } from "tiny";
import greeting from "./greeting.json";
import { count, type Counted } from "./counter";

let own = 0;

export async function Next(ctx: Ctx) {
  const counted: Counted = count();
  const refused = await load().catch((error: { code: string }) => error.code);
  return { data: { own: own++, ...counted, said: greeting.text, doubled: double(4), refused } };
}
