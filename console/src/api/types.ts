// Names for the messages of the API. They come from the generated document; only what it leaves open is said here.
import type { components } from "./openapi";

type Schemas = components["schemas"];

/** The generator writes free objects as objects without fields; here they hold anything. */
type Open<T> = T extends (infer E)[]
  ? Open<E>[]
  : T extends object
    ? string extends keyof T
      ? [T[string & keyof T]] extends [never]
        ? Record<string, unknown>
        : { [K in keyof T]: Open<T[K]> }
      : { [K in keyof T]: Open<T[K]> }
    : T;
type Message<K extends keyof Schemas> = Open<Schemas[K]>;

export type Status = Schemas["RunStatus"];
export type ErrorInfo = Omit<Message<"ErrorInfo">, "details"> & { details?: Record<string, unknown> | null };
export type Page<T> = { items: T[]; next_cursor?: string | null };
export type Artifact = Message<"Artifact">;
export type Folder = Message<"Folder">;
export type WaitingFor = Message<"WaitingFor">;
export type Run = Message<"Run">;
export type Ask = Message<"Ask">;
export type AskDetail = Message<"AskDetail">;
export type ToolDefinition = Message<"ToolDefinition">;
export type Permission = Message<"AgentPermission">;
export type Event = { seq: number; run_id: string; at: string; type: string } & Record<string, unknown>;
export type Tool = Message<"Tool">;
export type Flow = Message<"Flow">;
export type FlowCheck = Message<"FlowCheck">;
export type FlowFinding = Message<"FlowFinding">;
export type RunStep = Message<"RunStep">;
/** What came of something that was to start a run. */
export type TriggerFiring = { at: string; about: string; state: string; run_id?: string | null; error?: ErrorInfo | null };
/** A trigger with a hook, or on files or runs. */
export type Trigger = Omit<Message<"Trigger">, "path" | "proof" | "secret_name"> & {
  path?: string | null;
  proof?: Message<"Trigger">["proof"] | null;
  secret_name?: string | null;
  on_file?: string | null;
  on_run?: string | null;
  pause_cause?: string | null;
  fired?: number;
  last?: TriggerFiring | null;
};
export type Receiver = Message<"Receiver"> & { when?: string | null; include?: string[] };
export type Delivery = Message<"Delivery">;
export type ToolDiff = Message<"ToolDiff">;
export type Provider = Message<"Provider">;
export type Launch = Message<"ProviderLaunch">;
export type ProviderUsage = Message<"ProviderUsage">;
export type LogLine = Message<"AgentLogLine">;
export type World = Message<"World">;
export type Usage = Message<"Usage">;
export type Trace = Message<"Trace">;
export type Costs = Message<"Costs">;
export type Account = Message<"Account">;
export type AuditRecord = Message<"AuditRecord">;
export type AuditVerdict = Message<"AuditVerdict">;
export type Token = Message<"Token">;
export type Secret = Message<"Secret">;
export type Diagnosis = Message<"Diagnosis">;
export type Me = Message<"ConsoleSession">;
export type System = Message<"System">;
export type Series = Message<"SystemSeries">;
export type Purge = Message<"Purge">;
export type Schedule = Message<"Schedule">;
export type Firing = Message<"Firing">;
export type CoreLog = Message<"CoreLog">;
export type Stats = Message<"RunStats">;
export type Lineage = Message<"RunLineage">;
export type Tree = Message<"RunTree">;
export type Found = Message<"Search">;
export type Seat = Message<"Seat">;
