import rates from "./rates.json" with { type: "json" };

/** How many digits a currency has behind the point, if not two. */
const digits: Record<string, number> = { JPY: 0 };

export function round(amount: number, currency: string): number {
  const unit = 10 ** (digits[currency] ?? 2);
  return Math.round(amount * unit) / unit;
}

/** All currencies that are known. */
export function currencies() {
  return { currencies: Object.keys(rates) };
}
