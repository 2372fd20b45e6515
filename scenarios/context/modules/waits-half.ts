export const answer: number = await Promise.resolve(41).then((n) => n + 1);
