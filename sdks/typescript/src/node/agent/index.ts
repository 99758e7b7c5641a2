/** Agents as processes of their own, which a core starts. Node only. */

import { Desk, type Servable, type ServeOptions } from "../../serve.js";
import { Connection, Refused } from "./connection.js";
import { Session } from "./session.js";

/** Who an agent is. */
export interface RunAgentOptions extends ServeOptions {
  /** Its id, as its manifest has it: `dev.example.flights`. */
  id: string;
  /** Its version, as its manifest has it. */
  version: string;
  /** How many calls it takes at once. */
  callsMax?: number;
}

const CALLS_MAX = 256;
const EXIT_MS = 1_000;

/**
 * Serves tools to the core that started this process, until it says goodbye.
 *
 * ```ts
 * await runAgent([Search, Book], { id: "dev.example.flights", version: "0.1.0" });
 * ```
 *
 * What cannot be served is an error at once. A core that refuses the agent ends the process with status 1.
 */
export async function runAgent(tools: readonly Servable[] | Servable, options: RunAgentOptions): Promise<void> {
  const { id, version, callsMax = CALLS_MAX, ...serving } = options;
  const desk = new Desk(Array.isArray(tools) ? tools : [tools as Servable], serving);
  const address = process.env["OPENSENTIENCE_SOCKET"] ?? "";
  // Taken out of the environment, so that nothing this process starts could inherit it.
  const given = process.env["OPENSENTIENCE_SESSION_TOKEN"];
  delete process.env["OPENSENTIENCE_SESSION_TOKEN"];
  // Whoever holds the connection needs no other proof.
  const token = given || (address.startsWith("fd:") ? "inherited" : "");
  try {
    if (!address || !token) throw new Refused("This agent is started by a core, which says where to connect.");
    const session = new Session(await Connection.open(address), { id, version, callsMax }, desk);
    const stop = (): void => session.stop();
    process.once("SIGTERM", stop);
    await session.run(token);
    process.removeListener("SIGTERM", stop);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
  // A tool that does not listen must not keep the process.
  setTimeout(() => process.exit(), EXIT_MS).unref();
}
