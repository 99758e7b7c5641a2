/** The same checks on every kind of connection. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { elicit, eventStream, Fault, memoryPair, scope, serve, tool, webSocket, type Transport } from "wharf-sdk";
import { z } from "zod";
import { eventServer, webSocketServer } from "../support/servers.js";
import { fails, Gate, stopped, until } from "../support/waiting.js";

interface Pair {
  near: Transport;
  far: Transport;
  close(): Promise<void>;
}

const KINDS: Record<string, () => Promise<Pair>> = {
  async memory() {
    const [near, far] = memoryPair();
    return { near, far, close: () => near.close() };
  },
  async websocket() {
    const server = await webSocketServer({ protocol: "wharf.tool.v1" });
    const near = await webSocket(server.url);
    const far = (await server.peer()).transport();
    return { near, far, close: async () => (await near.close(), server.close()) };
  },
  async events() {
    const server = await eventServer();
    const near = await eventStream(server.url);
    const far = (await server.peer()).transport();
    return { near, far, close: async () => (await near.close(), server.close()) };
  },
};

const Work = tool({
  name: "work",
  description: "",
  input: z.object({ how: z.string() }),
  output: z.object({ did: z.string() }),
  progress: z.object({ step: z.number() }),
});

let cleaned = 0;
const work = Work.implement(async ({ how }, cx) => {
  cx.progress({ step: 1 });
  cx.progress({ step: 2 });
  if (how === "fail") throw new Fault("tool.limit", "Enough.", { details: { max: 1 } });
  if (how === "ask") {
    const answer = await cx.elicit("Really?", z.object({ ok: z.boolean() }));
    return { did: answer.status };
  }
  if (how === "wait") {
    await stopped(cx.signal);
    cleaned += 1;
  }
  return { did: how };
});

for (const [kind, make] of Object.entries(KINDS)) {
  const either = async (body: (caller: Transport, server: Transport) => Promise<void>): Promise<void> => {
    for (const turned of [false, true]) {
      const { near, far, close } = await make();
      try {
        await body(turned ? far : near, turned ? near : far);
      } finally {
        await close();
      }
    }
  };

  test(`k031_k022_${kind}_calls_stream_and_answer_in_both_directions`, () =>
    either(async (caller, server) => {
      serve(server, [work]);
      const call = scope(caller).call(Work, { how: "grüße 🚢" });
      const steps: number[] = [];
      for await (const { step } of call.progress) steps.push(step);
      assert.deepEqual(steps, [1, 2]);
      assert.deepEqual(await call, { did: "grüße 🚢" });
    }));

  test(`k022_${kind}_carries_faults_whole`, () =>
    either(async (caller, server) => {
      serve(server, [work]);
      const fault = await fails(scope(caller).call(Work, { how: "fail" }), "tool.limit");
      assert.deepEqual(fault.details, { max: 1 });
    }));

  test(`k022_${kind}_carries_large_values`, () =>
    either(async (caller, server) => {
      serve(server, [work]);
      const how = "x".repeat(300_000);
      assert.equal((await scope(caller).call(Work, { how })).did.length, how.length);
    }));

  test(`k022_${kind}_cancels`, () =>
    either(async (caller, server) => {
      serve(server, [work]);
      const before = cleaned;
      const step = new Gate();
      const call = scope(caller).call(Work, { how: "wait" }, { onProgress: () => step.open() });
      await step.opened;
      await call.cancel();
      await fails(call, "tool.canceled");
      await until(() => cleaned === before + 1, "the clean-up");
    }));

  test(`k022_${kind}_asks_back`, () =>
    either(async (caller, server) => {
      serve(server, [work]);
      const root = scope(caller).provide(elicit, () => ({ status: "declined" }));
      assert.deepEqual(await root.call(Work, { how: "ask" }), { did: "declined" });
    }));

  test(`k022_${kind}_serves_sixty_four_at_once`, () =>
    either(async (caller, server) => {
      const gate = new Gate();
      let inside = 0;
      serve(server, [Work.implement(async ({ how }) => ((inside += 1), await gate.opened, { did: how }))]);
      const calls = Array.from({ length: 64 }, (_, n) => scope(caller).call(Work, { how: String(n) }));
      await until(() => inside === 64, "all to be inside");
      gate.open();
      const done = await Promise.all(calls);
      assert.deepEqual(done.map(({ did }) => did), calls.map((_, n) => String(n)));
    }));

  test(`k026_${kind}_says_that_the_peer_is_lost`, async () => {
    const { near, far, close } = await make();
    serve(far, [work]);
    const step = new Gate();
    const call = scope(near).call(Work, { how: "wait" }, { onProgress: () => step.open() });
    await step.opened;
    await close();
    await fails(call, "transport.lost");
  });
}
