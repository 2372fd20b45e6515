// A script server of several files: each exported function is a tool.
import { round } from "./lib/money.ts";
import rates from "./lib/rates.json" with { type: "json" };

type Currency = "EUR" | "NOK" | "JPY";

/**
 * Converts an amount of money.
 * @param amount - how much
 * @param to - the currency wanted
 */
export function convert(amount: number, to: Currency, from: Currency = "EUR") {
  return { amount: round((amount / rates[from]) * rates[to], to), currency: to };
}

export { currencies } from "./lib/money.ts";
