import { late } from "./torn-half.ts";

export const early = 1;

export function Next() {
  return { data: { late } };
}
