// setTimeout, setInterval, queueMicrotask and performance, by the host's clock.
// Invariant: timers fire in the order of their due times, equal ones in the order they were set, whatever order the host's sleeps end
// in: a sleep that ends only says that one timer more may fire. Nothing is kept from one call of a frozen context to the next.
(function (web) {
  'use strict';
  const { apply } = Reflect;
  const { then } = Promise.prototype;
  const later = (promise, run) => { apply(then, promise, [run]); };
  const callable = (name, run) => {
    if (typeof run !== 'function') throw new TypeError(`${name}: the callback must be a function`);
  };
  // Longest and shortest wait, in milliseconds.
  const LONGEST = 2 ** 31 - 1;
  const wait = (given) => {
    const delay = Math.trunc(Number(given));
    return delay > 0 ? Math.min(delay, LONGEST) : 0;
  };

  let turn, last, waiting, current;
  const begin = () => {
    const now = web.turn();
    if (now === turn) return;
    turn = now;
    last = 0;
    waiting = [];
    current = undefined;
  };
  const arm = (timer, now) => {
    let at = waiting.length;
    while (at > 0 && waiting[at - 1].due > timer.due) at--;
    waiting.splice(at, 0, timer);
    timer.sleep = web.start('$sleep', timer.due - now);
    later(timer.sleep, fire);
  };
  const fire = () => {
    const now = web.ask('$now'), timer = waiting[0];
    // A microsecond's tolerance, for times are fractions.
    if (timer === undefined || timer.due > now + 0.001) return;
    waiting.shift();
    if (timer.every === undefined) return void timer.run();
    const outer = current;
    current = timer;
    try {
      timer.run();
    } finally {
      current = outer;
      if (!timer.isCleared) {
        timer.due = Math.max(timer.due + timer.every, now);
        arm(timer, now);
      }
    }
  };
  const set = (run, delay, every) => {
    begin();
    const now = web.ask('$now');
    // Whole microseconds, so that equal times are equal.
    const timer = { id: ++last, due: Math.round((now + delay) * 1000) / 1000, every, run, isCleared: false, sleep: undefined };
    arm(timer, now);
    return timer.id;
  };
  const clear = (id) => {
    begin();
    if (current !== undefined && current.id === id) current.isCleared = true;
    for (let at = 0; at < waiting.length; at++) {
      if (waiting[at].id !== id) continue;
      const [timer] = waiting.splice(at, 1);
      web.cancel(timer.sleep);
      return;
    }
  };

  return {
    /** Runs a function after a while; for the other parts. */
    after: (delay, run) => set(run, wait(delay)),
    setTimeout: function setTimeout(callback, delay, ...values) {
      callable('setTimeout', callback);
      return set(() => apply(callback, undefined, values), wait(delay));
    },
    setInterval: function setInterval(callback, delay, ...values) {
      callable('setInterval', callback);
      const every = Math.max(wait(delay), 1);
      return set(() => apply(callback, undefined, values), every, every);
    },
    clearTimeout: function clearTimeout(id) { clear(id); },
    clearInterval: function clearInterval(id) { clear(id); },
    queueMicrotask: function queueMicrotask(callback) {
      callable('queueMicrotask', callback);
      later(Promise.resolve(), () => { callback(); });
    },
    performance: { now() { return web.ask('$now'); } },
  };
})
