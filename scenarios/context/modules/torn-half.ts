import { early } from "./torn.ts";

// The other file has not run yet.
export const late = early + 1;
