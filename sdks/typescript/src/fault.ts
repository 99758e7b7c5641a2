/** What went wrong with a call, in a form that survives a wire. */

/** What a fault says besides its code and message. */
export interface FaultOptions {
  /** Whether the same call may succeed later. */
  retryable?: boolean;
  /** More for programs; plain JSON. */
  details?: Record<string, unknown>;
  /** The error behind it. It never leaves the process. */
  cause?: unknown;
}

/** A fault as it stands in a message. */
export interface FaultMessage {
  code: string;
  message: string;
  retryable: boolean;
  details?: Record<string, unknown>;
}

/**
 * A failure with a stable code and one sentence for the caller.
 *
 * Throw one from a tool to tell the caller why. The text of any other error stays in the process:
 * callers elsewhere only learn that the tool failed.
 */
export class Fault extends Error {
  override readonly name = "Fault";
  /** A stable, dotted code: `tool.invalid_input`, `transport.lost`. */
  readonly code: string;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** More for programs, as `path` of a value that is not valid. */
  readonly details: Record<string, unknown> | undefined;

  constructor(code: string, message: string, options: FaultOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? false;
    this.details = options.details;
  }

  /** Whether somebody called the call off, or its time was over. */
  get isCanceled(): boolean {
    return this.code === "tool.canceled" || this.code === "tool.timeout";
  }

  /** The fault as it is written into a message. */
  toJSON(): FaultMessage {
    const message: FaultMessage = { code: this.code, message: this.message, retryable: this.retryable };
    if (this.details !== undefined) message.details = this.details;
    return message;
  }

  /** Whoever was asked does not want to. Nothing was done. */
  static declined(message = "The call was declined."): Fault {
    return new Fault("tool.declined", message);
  }

  /** It is not allowed. */
  static denied(message = "The call was denied."): Fault {
    return new Fault("permission.denied", message);
  }

  /** The call was called off. */
  static canceled(message = "The call was canceled."): Fault {
    return new Fault("tool.canceled", message);
  }

  /** Makes a fault of whatever was thrown. */
  static from(error: unknown): Fault {
    if (error instanceof Fault) return error;
    if (error instanceof Error && error.name === "TimeoutError") {
      return new Fault("tool.timeout", "The call took too long.", { cause: error, retryable: true });
    }
    if (error instanceof Error && error.name === "AbortError") {
      return new Fault("tool.canceled", "The call was canceled.", { cause: error });
    }
    const text = error instanceof Error ? error.message : String(error);
    return new Fault("tool.internal", text || "The tool failed inside.", { cause: error });
  }

  /** Reads a fault from a message; what is missing or has another form is replaced. */
  static read(value: unknown, otherwise = "The call failed."): Fault {
    const said = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
    const code = typeof said["code"] === "string" && said["code"] !== "" ? said["code"] : "tool.failed";
    const message = typeof said["message"] === "string" ? said["message"] : otherwise;
    const options: FaultOptions = { retryable: said["retryable"] === true };
    const details = said["details"];
    if (typeof details === "object" && details !== null && !Array.isArray(details)) {
      options.details = details as Record<string, unknown>;
    }
    return new Fault(code, message, options);
  }
}

/** The fault as others may see it: the text of an error that was no fault stays here. */
export function forOthers(fault: Fault): Fault {
  if (fault.code !== "tool.internal" || fault.cause === undefined) return fault;
  return new Fault("tool.internal", "The tool failed inside.");
}
