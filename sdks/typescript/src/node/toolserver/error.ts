/** A run that cannot go on: a code of the run protocol and one safe sentence. */
export class RunError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}
