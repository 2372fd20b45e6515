export const hidden = () => "";

/** Says it louder. */
export const shout = (text: string, times: number = 1, ctx: Ctx) => ({ said: text + "!".repeat(times), by: ctx.assistant_id });
