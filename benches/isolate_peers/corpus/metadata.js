function Create(ctx, messages, options) {
  return { metadata: { chat: ctx.chat_id, words: messages[0].content.split(" ").length } };
}
