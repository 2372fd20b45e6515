// What a customer pays.
type Order = { total: number; customer: "new" | "old" };

interface Rate {
  percent: number;
}

const RATES: Record<string, Rate> = {
  new: { percent: 10 },
  old: { percent: 5 },
};

export function Create(ctx: any, messages: any[]): any {
  const order = JSON.parse(messages[0].content) as Order;
  if (order.total < 0) {
    return refuse("a total cannot be negative");
  }
  return { data: pays(order), messages: order.customer === "new" ? greet(messages) : messages };
}

function pays(order: Order): number {
  const rate: Rate = RATES[order.customer];
  /* whole
     units */
  return Math.round(order.total * (1 - rate.percent / 100));
}

function refuse(why: string): never {
  throw new Error(why);
}

const greet = (messages: any[]): any[] => [{ role: "system", content: "Grüß Gott" }, ...messages];
