import { cuont } from "./counter";

export const Next = () => ({ data: { count: cuont() } });
