// A core of its own for a test: started on a fresh home, killed at the end.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const BIN = process.env.WHARF_BIN ?? "wharf";

/** Waits until a condition gives something, at most half a minute. */
export async function until(what, look, ms = 30_000) {
  const end = Date.now() + ms;
  let last;
  while (Date.now() < end) {
    try {
      const found = await look();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    await new Promise((go) => setTimeout(go, 100));
  }
  throw new Error(`${what} did not happen in ${ms} ms${last ? `: ${last.message}` : ""}`);
}

/** A program that is a core of another version: the same one with another number wherever its own stands in the file. */
export async function otherVersion(path, from, to) {
  if (from.length !== to.length) throw new Error(`${to} is not as long as ${from}`);
  const program = await readFile(BIN);
  let places = 0;
  for (let at = program.indexOf(from); at >= 0; at = program.indexOf(from, at + 1)) {
    program.write(to, at, "latin1");
    places += 1;
  }
  if (places === 0) throw new Error(`${BIN} does not name version ${from}`);
  await writeFile(path, program, { mode: 0o755 });
}

export class Core {
  static async start({ demo = false, args = [] } = {}) {
    const core = new Core();
    core.home = await mkdtemp(join(tmpdir(), "wharf-console-"));
    core.args = ["up", ...(demo ? ["--demo"] : []), ...(process.env.WHARF_CONSOLE_DIR ? ["--console-dir", process.env.WHARF_CONSOLE_DIR] : []), ...args];
    await core.up("127.0.0.1:0");
    return core;
  }

  async up(listen, program = BIN) {
    this.log = "";
    this.process = spawn(program, [...this.args, "--listen", listen], { env: { ...process.env, WHARF_HOME: this.home }, stdio: ["ignore", "pipe", "pipe"] });
    let fault;
    this.process.once("error", (error) => (fault = error));
    this.process.stdout.on("data", (d) => (this.log += d));
    this.process.stderr.on("data", (d) => (this.log += d));
    await new Promise((go) => setImmediate(go));
    if (fault) throw new Error(`${program} does not start: ${fault.message}`);
    this.token = (await until("the owner's token", () => readFile(join(this.home, "run/owner.token"), "utf8"))).trim();
    const info = await until("the core's address", async () => {
      const core = JSON.parse(await readFile(join(this.home, "run/core.json"), "utf8"));
      return core.pid === this.process.pid && core;
    });
    this.url = info.http.startsWith("http") ? info.http : `http://${info.http}`;
    await until("an answer of the core", async () => (await fetch(`${this.url}/readyz`)).ok);
  }

  async api(path, { method, body, token = this.token, type = "application/json" } = {}) {
    const answer = await fetch(this.url + path, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { "content-type": type }) },
      body: body === undefined ? undefined : typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method ?? ""} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  run(tool, inputs, more = {}) {
    const { wait, ...rest } = more;
    return this.api(`/v1/runs${wait ? `?wait=${wait}` : ""}`, { body: { tool, inputs, ...rest } });
  }

  /** The address of a link that signs in once. */
  async link() {
    return (await this.api("/v1/console/links", { method: "POST", body: "" })).url;
  }

  /** Ends it at once, as a loss of power would. */
  async kill() {
    const gone = new Promise((done) => this.process.once("exit", done));
    this.process.kill("SIGKILL");
    await gone;
  }

  /** Starts it again on the same home and the same port, or another program in its place. */
  async again(program) {
    await this.up(new URL(this.url).host, program);
  }

  async stop() {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const gone = new Promise((done) => this.process.once("exit", done));
      this.process.kill("SIGTERM");
      await Promise.race([gone, new Promise((go) => setTimeout(go, 8000))]);
      if (this.process.exitCode === null && this.process.signalCode === null) await this.kill();
    }
    await rm(this.home, { recursive: true, force: true });
  }
}
