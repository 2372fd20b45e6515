import { step } from "./step.js";

export interface Counted {
  count: number;
}

let total = 0;

export const count = (): Counted => ({ count: (total += step()) });
export const now = () => total;
