// A server with one tool, which is also a hook that passes everything.
export function pass() { return { accept: true, left: 3 }; }
