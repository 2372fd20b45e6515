import { hidden } from "./weather-half.ts";

interface Place {
  /** Name of a city. */
  city: string;
  country?: "NO" | "IT";
}

/** Tells the weather. */
export function weather(args: { place: Place; days?: number }) {
  return { text: `${args.place.city}, ${args.days ?? 1} days${hidden()}` };
}

/**
 * Adds two numbers.
 * @param {number} a - the first
 * @param {number} [b=10] - the second
 */
export function add(a, b = 10) {
  return { sum: a + b };
}

export { shout } from "./weather-half.ts";

export function anything(args: any) {
  return { got: args };
}

function helper() {
  return {};
}
