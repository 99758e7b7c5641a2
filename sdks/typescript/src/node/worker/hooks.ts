/** How imports of a handler are found and read, for Nodes that ask on a thread of its own. */

import { loaded, mapped, readPlace, type Place } from "./place.js";

let place: Place = { folder: "", files: {} };

export function initialize(path: string): void {
  place = readPlace(path);
}

type Next = (to: string, context: unknown) => unknown;

export async function resolve(specifier: string, context: { parentURL?: string }, next: Next): Promise<unknown> {
  return next(mapped(specifier, context.parentURL) ?? specifier, context);
}

export async function load(url: string, context: unknown, next: Next): Promise<unknown> {
  return loaded(place, url) ?? next(url, context);
}
