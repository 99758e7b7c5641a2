/** Tools and agents for Wharf: define them, wrap them, call them, serve them. */

export { agent, type Agent, type AgentInstance, type AgentOptions, type Implementations, type ToolCalls } from "./agent.js";
export { elicit, notify, sample, type Elicited, type ElicitInput, type NotifyInput, type Sampled, type SampleInput } from "./builtins.js";
export { Call, type CallOptions } from "./call.js";
export { Cx, type EachOptions } from "./context.js";
export { connect, connectOperative, type ConnectOptions, type CoreOptions, type Operative, type OperativeOptions, type OperativeState } from "./core.js";
export { tryDurable, type DurableTrial, type DurableTrialOptions } from "./durable-trial.js";
export { Fault, type FaultMessage, type FaultOptions } from "./fault.js";
export type { JsonSchema } from "./json-schema.js";
export type { Layer, LayerOptions } from "./layers.js";
export { eventStream, type EventStreamOptions } from "./links/events.js";
export { memoryPair, type PairOptions } from "./links/memory.js";
export { webSocket, type WebSocketLike, type WebSocketMaker, type WebSocketOptions } from "./links/websocket.js";
export { Progress } from "./progress.js";
export { jsonSchema, type FromJsonSchema, type Given, type Schema, type StandardSchema, type Taken } from "./schema.js";
export { scope, type AgentLayers, type Scope } from "./scope.js";
export { serve, type CloseOptions, type Servable, type Served, type ServeOptions } from "./serve.js";
export type { Level } from "./task.js";
export { tool, type AnyTool, type Definition, type ImplementedTool, type InputOf, type OutputOf, type ProgressOf, type Run, type RunOf, type Tool, type ToolOptions, type ToolSchemas } from "./tool.js";
export { tryTool, type Trial, type TrialOptions } from "./trial.js";
export { Transport, type Counters, type Link, type LinkEvents, type TransportLimits } from "./transport.js";
export type { Offer, Outcome } from "./wire.js";
