const PATTERNS = [/\b\d{4}[- ]?\d{4}[- ]?\d{4}[- ]?\d{4}\b/g, /[\w.+-]+@[\w-]+\.[\w.]+/g, /\+?\d[\d ()-]{7,}\d/g];
function redact(text) {
  return PATTERNS.reduce((rest, pattern) => rest.replace(pattern, "***"), text);
}
function Create(ctx, messages, options) {
  return { messages: messages.map((message) => ({ ...message, content: redact(message.content) })) };
}
