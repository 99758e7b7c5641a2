/** What faults are called in the run protocol, where they have a name of its own there. */
export const CODES: Record<string, string> = {
  "tool.invalid_input": "ERR_INPUTS",
  "tool.busy": "ERR_BUSY",
  "tool.limit": "ERR_LIMIT",
  "tool.canceled": "ERR_CANCELED",
  "tool.timeout": "ERR_TIMEOUT",
  "tool.internal": "ERR_HANDLER",
};

/** A run that cannot go on: a code of the run protocol and one safe sentence. */
export class RunError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
