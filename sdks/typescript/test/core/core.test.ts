/** Against a real core: calling its tools, and offering tools to it. */

import assert from "node:assert/strict";

import { connect, connectOperative, Fault, scope, tool, type Operative, type Scope, type Transport } from "wharf-sdk";
import { z } from "zod";
import { coreTest, freshName, question, type Core } from "../support/core.js";
import { fails, Gate, stopped, until } from "../support/waiting.js";

const Count = tool({ name: "wharf/count", description: "", input: z.object({ n: z.number() }), output: {} });

async function calling(core: Core, body: (root: Scope, transport: Transport) => Promise<void>, via: "websocket" | "events" = "websocket"): Promise<void> {
  const transport = await connect(core.url, { token: core.token, via });
  try {
    await body(scope(transport), transport);
  } finally {
    await transport.close();
  }
}

async function offering(core: Core, tools: Parameters<typeof connectOperative>[1]["tools"], body: (provider: string, operative: Operative) => Promise<void>, via: "websocket" | "events" = "websocket"): Promise<void> {
  const provider = freshName();
  const operative = connectOperative(core.url, { provider, token: core.token, tools, via, backoff: { firstMs: 50 } });
  try {
    assert.deepEqual(await operative.ready, tools.map((one) => `${provider}/${(one as { name: string }).name}`));
    await body(provider, operative);
  } finally {
    await operative.close();
  }
}

const Locate = tool({
  name: "get-location",
  description: "Says where somebody is.",
  sideEffects: false,
  input: z.object({ accuracy: z.enum(["high", "low"]) }),
  output: z.object({ lat: z.number(), lng: z.number() }),
  progress: z.object({ status: z.string() }),
  run({ accuracy }, cx) {
    cx.progress({ status: "asking" });
    cx.progress({ status: accuracy });
    return { lat: 48.85, lng: 2.35 };
  },
});

for (const via of ["websocket", "events"] as const) {
  coreTest(`k033_k032_a_tool_of_the_core_is_called_by_${via}`, (core) =>
    calling(core, async (root) => {
      const call = root.call(Count, { n: 3 });
      let pieces = 0;
      for await (const _ of call.progress) pieces += 1;
      assert.ok(pieces > 0, "its progress is seen");
      assert.ok(typeof (await call) === "object");
    }, via));

  coreTest(`k033_k032_a_tool_is_offered_and_called_by_${via}`, (core) =>
    offering(core, [Locate], async (provider) => {
      const shown = await core.api(`/v1/tools/${provider}/get-location`);
      assert.equal(shown.description, "Says where somebody is.");
      await calling(core, async (root) => {
        const There = tool({ name: `${provider}/get-location`, description: "", input: Locate.input, output: Locate.output, progress: Locate.progress });
        const call = root.call(There, { accuracy: "high" });
        const seen: string[] = [];
        for await (const { status } of call.progress) seen.push(status);
        assert.deepEqual(seen, ["asking", "high"]);
        assert.deepEqual(await call, { lat: 48.85, lng: 2.35 });
      }, via);
    }, via));

  coreTest(`k036_a_cost_goes_through_the_core_by_${via}`, async (core) => {
    const Buy = tool({ name: "buy", description: "", input: z.object({ n: z.number() }), output: {} }).implement(({ n }, cx) => {
      cx.cost(300);
      cx.cost(n);
      return {};
    });
    await offering(core, [Buy], (provider) =>
      calling(core, async (root) => {
        const call = root.call(`${provider}/buy`, { n: 200 });
        await call;
        assert.equal(call.cost, 500);
        const runs = await core.api(`/v1/runs?tool=${provider}/buy`);
        assert.equal(runs.items[0].cost_micro, 500);
      }, via), via);
  });

  coreTest(`k033_k026_cancel_goes_through_the_core_by_${via}`, async (core) => {
    const started = new Gate();
    const over = new Gate();
    const Wait = tool({
      name: "wait",
      description: "",
      input: z.object({}),
      output: z.object({}),
      async run(_, cx) {
        started.open();
        await stopped(cx.signal);
        over.open();
        return {};
      },
    });
    await offering(core, [Wait], async (provider) =>
      calling(core, async (root) => {
        const call = root.call(`${provider}/wait`, {});
        await started.opened;
        void call.cancel();
        await fails(call, "tool.canceled");
        await over.opened;
      }, via), via);
  });
}

coreTest("k033_k005_the_core_refuses_what_does_not_fit_and_says_where", (core) =>
  calling(core, async (root) => {
    const fault = await fails(root.call("wharf/count", { n: "many" }), "tool.invalid_input");
    assert.equal(fault.details?.["path"], "/n");
    await fails(root.call(`${freshName()}/nowhere`, {}), "tool.not_found");
  }));

coreTest("k033_values_that_are_no_objects_cross_the_core", async (core) => {
  const Double = tool({ name: "double", description: "", input: z.number(), output: z.number(), run: (n) => n * 2 });
  await offering(core, [Double], async (provider) =>
    calling(core, async (root) => {
      assert.equal(await root.call(`${provider}/double`, 21), 42);
    }));
});

coreTest("k033_k028_faults_cross_the_core_whole", async (core) => {
  const Bad = tool({
    name: "bad",
    description: "",
    sideEffects: false,
    input: z.object({ how: z.string() }),
    output: z.object({}),
    run({ how }) {
      if (how === "decline") throw Fault.declined();
      if (how === "deny") throw Fault.denied();
      if (how === "inside") throw new Error("password is hunter2");
      throw new Fault("acme.sold_out", "No seats are left.", { details: { seats: 0 } });
    },
  });
  await offering(core, [Bad], async (provider) =>
    calling(core, async (root) => {
      const call = (how: string): PromiseLike<unknown> => root.call(`${provider}/bad`, { how });
      const fault = await fails(call("fail"), "acme.sold_out");
      assert.equal(fault.message, "No seats are left.");
      assert.equal(fault.details?.["seats"], 0);
      await fails(call("decline"), "permission.denied");
      await fails(call("deny"), "permission.denied");
      assert.doesNotMatch((await fails(call("inside"), "tool.internal")).message, /hunter2/);
      const run = await core.api("/v1/runs?wait=30s", { tool: `${provider}/bad`, inputs: { how: "decline" } });
      assert.equal(run.status, "refused");
      assert.equal(run.error.code, "tool.declined");
    }));
});

coreTest("k033_k019_a_question_is_put_to_the_inbox", (core) =>
  calling(core, async (root) => {
    const title = `Which colour for ${freshName()}?`;
    const asked = root.elicit(title, z.object({ colour: z.string() }));
    const { ask_id } = await question(core, title);
    await core.api(`/v1/questions/${ask_id}/answer`, { value: { colour: "red" } });
    assert.deepEqual(await asked, { status: "accepted", content: { colour: "red" } });
    const again = root.elicit(`${title} Really?`, z.object({ colour: z.string() }));
    const second = await question(core, `${title} Really?`);
    await core.api(`/v1/questions/${second.ask_id}/answer`, { status: "off_script", text: "Ask my sister." });
    assert.deepEqual(await again, { status: "other", content: "Ask my sister." });
    assert.equal(await root.notify("All is well"), null);
  }));

coreTest("k033_k032_a_handler_asks_notifies_and_calls_through_the_core", async (core) => {
  const title = `Go on with ${freshName()}?`;
  const Work = tool({
    name: "work",
    description: "",
    input: z.object({}),
    output: z.object({ answer: z.string(), counted: z.unknown() }),
    async run(_, cx) {
      await cx.notify("Working");
      const counted = await cx.call(Count, { n: 2 });
      const answer = await cx.elicit(title, z.object({ ok: z.boolean() }));
      return { answer: answer.status, counted };
    },
  });
  await offering(core, [Work], async (provider) =>
    calling(core, async (root) => {
      const call = root.call(`${provider}/work`, {});
      const { ask_id } = await question(core, title);
      await core.api(`/v1/questions/${ask_id}/answer`, { status: "declined" });
      const done = (await call) as { answer: string; counted: unknown };
      assert.equal(done.answer, "declined");
      assert.equal(typeof done.counted, "object");
    }));
});

coreTest("k033_k032_a_lost_caller_cancels_what_it_started_unless_it_detaches", async (core) => {
  const started: string[] = [];
  const stoppedNames: string[] = [];
  const release = new Gate();
  const Wait = tool({
    name: "wait",
    description: "",
    input: z.object({ who: z.string() }),
    output: z.object({}),
    async run({ who }, cx) {
      started.push(who);
      await Promise.race([stopped(cx.signal).then(() => stoppedNames.push(who)), release.opened]);
      return {};
    },
  });
  await offering(core, [Wait], async (provider) => {
    for (const detach of [false, true]) {
      const transport = await connect(core.url, { token: core.token, detach });
      void scope(transport).call(`${provider}/wait`, { who: detach ? "detached" : "attached" }).catch(() => {});
      await until(() => started.length === (detach ? 2 : 1), "the call to begin");
      await transport.close();
    }
    await until(() => stoppedNames.includes("attached"), "the attached one to stop");
    assert.deepEqual(stoppedNames, ["attached"]);
    release.open();
    assert.deepEqual((await settled(core, `${provider}/wait`)).sort(), ["canceled", "succeeded"]);
  });
});

/** How the runs of a tool ended, once they are over. */
async function settled(core: Core, of: string): Promise<string[]> {
  for (;;) {
    const { items } = await core.api("/v1/runs?limit=100");
    const runs = items.filter((item: any) => item.tool === of);
    if (runs.every((run: any) => run.ended_at)) return runs.map((run: any) => run.status);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

coreTest("k033_k032_sixty_four_requests_are_in_flight_at_once", async (core) => {
  const gate = new Gate();
  let inside = 0;
  const Many = tool({
    name: "many",
    description: "",
    input: z.object({ n: z.number() }),
    output: z.object({ n: z.number() }),
    async run({ n }) {
      inside += 1;
      await gate.opened;
      return { n };
    },
  });
  await offering(core, [Many], async (provider) =>
    calling(core, async (root) => {
      const calls = Array.from({ length: 64 }, (_, n) => root.call(`${provider}/many`, { n }));
      await until(() => inside === 64, "all to be inside");
      gate.open();
      assert.deepEqual(await Promise.all(calls), calls.map((_, n) => ({ n })));
    }));
});

coreTest("k033_k032_a_name_that_was_not_granted_is_refused", async (core) => {
  const { token } = await core.api("/v1/tokens", { label: "page", verbs: ["serve"], tools: ["mine/*"] });
  const refused = connectOperative(core.url, { provider: freshName(), token, tools: [Locate] });
  await fails(refused.ready, "permission.denied");
  await refused.close();
});

coreTest("k033_k032_a_wrong_token_is_refused_before_anything_else", async (core) => {
  await fails(connect(core.url, { token: "nonsense" }), "auth.invalid");
  delete process.env["WHARF_TOKEN"];
  try {
    await fails(connect(core.url, {}), "auth.required");
  } finally {
    process.env["WHARF_TOKEN"] = core.token;
  }
  await fails(connect(core.url, { token: "nonsense", via: "events" }), "auth.invalid");
});

coreTest("k033_an_operative_that_was_gone_is_called_again_when_it_is_back", async (core) => {
  const provider = freshName();
  for (let round = 0; round < 2; round += 1) {
    const operative = connectOperative(core.url, { provider, token: core.token, tools: [Locate], backoff: { firstMs: 50 } });
    await operative.ready;
    const run = await core.api("/v1/runs?wait=30s", { tool: `${provider}/get-location`, inputs: { accuracy: "low" } });
    assert.equal(run.status, "succeeded", JSON.stringify(run.error));
    assert.deepEqual(run.outputs, { lat: 48.85, lng: 2.35 });
    await operative.close();
  }
});
