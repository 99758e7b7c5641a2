// The handlers of Restate: `node restate_handler.mjs MODULES PORT LEDGER`, on loopback only.

import { appendFileSync } from "node:fs";
import { createServer } from "node:http2";
import { createRequire } from "node:module";

const [modules, port, ledger] = process.argv.slice(2);
const restate = createRequire(`${modules}/`)("@restatedev/restate-sdk");

const bench = restate.service({
  name: "bench",
  handlers: {
    echo: async (_ctx, { text }) => ({ text }),
    steps: async (ctx, { text }) => {
      const first = await ctx.run("first", () => text);
      const second = await ctx.run("second", () => first);
      return { text: await ctx.run("third", () => second) };
    },
    // What it does can be seen outside: a line for each time it was done.
    work: async (ctx, { text }) => {
      await ctx.run("work", async () => {
        appendFileSync(ledger, `${text}\n`);
        await new Promise((done) => setTimeout(done, 10));
      });
      return { text };
    },
  },
});

const handler = restate.createEndpointHandler({ services: [bench] });
createServer(handler).listen(Number(port), "127.0.0.1", () => console.log("listening"));
