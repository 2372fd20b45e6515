await new Promise(() => {});

export const Next = () => ({ data: {} });
