import { answer } from "./waits-half.ts";

export const Next = () => ({ data: { answer } });
