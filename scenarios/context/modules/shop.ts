import { Level } from "./level";

class Till {
  constructor(private readonly rate: number) {}

  sum(amounts: number[]): number {
    if (amounts.length === 0) {
      throw new RangeError("nothing to sum");
    }
    return amounts.reduce((sum, amount) => sum + amount, 0) * this.rate;
  }
}

namespace Rates {
  export const high = 3;
}

export function Next(_: Ctx, payload: { messages: { content?: unknown }[] }) {
  const said = payload.messages[payload.messages.length - 1]?.content;
  const till = new Till(said === "high" ? Rates.high : Level.Low);
  return { data: { sum: till.sum(said === "nothing" ? [] : [1, 2]), level: Level[Level.High] } };
}
