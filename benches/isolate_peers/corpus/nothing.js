function Create(ctx, messages, options) {}
