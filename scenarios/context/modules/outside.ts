import secret from "../../../Cargo.toml";

export const Next = () => ({ data: { secret } });
