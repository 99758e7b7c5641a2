/** The envelope: how a tool says whether it went well without a whole response around it. */

/** What an envelope says. */
export interface Envelope {
  outputs: Record<string, unknown>;
  error: { code: string; message: string } | undefined;
}

/**
 * Reads an envelope: an object with the status `success` or `error` and an object `outputs` or `error`,
 * whatever else stands in it. An error that it reports is never a success, whatever its status says.
 */
export function readEnvelope(given: Record<string, unknown>): Envelope | undefined {
  const { status, outputs, error } = given;
  if (status !== "success" && status !== "error") return undefined;
  const reported = failure(error);
  if (!isObject(outputs) && reported === undefined) return undefined;
  const unknown = status === "error" ? { code: "UNKNOWN", message: "" } : undefined;
  return { outputs: isObject(outputs) ? outputs : {}, error: reported ?? unknown };
}

function failure(error: unknown): Envelope["error"] {
  if (typeof error === "string" && error !== "") return { code: "UNKNOWN", message: error };
  if (!isObject(error) || Object.keys(error).length === 0) return undefined;
  const text = (value: unknown, other: string): string => (typeof value === "string" && value !== "" ? value : other);
  return { code: text(error["code"], "UNKNOWN"), message: text(error["message"], "") };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
