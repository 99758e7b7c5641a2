// Narrowing a token where it is: a block that takes something away is added and sealed with the seal before it. No
// core is asked, and the text goes nowhere.

/** What a token is left with; what is absent stays as it is. */
export type Narrowing = { verbs?: string[]; worlds?: string[]; tools?: string[]; until?: number };
/** What a token says of itself. Whether its seals are right only its core knows. */
export type Held = { id: string; verbs: string[]; worlds?: string[] | undefined; until?: number | undefined };

/** The verbs in the order in which blocks have them. */
const VERBS = ["run", "read", "answer", "approve", "operate", "serve", "flow:write", "metrics", "admin"];
const TOKEN_MAX = 8 * 1024;
const BLOCKS_MAX = 8;
const SEALED = "wharf.token.narrowed.1\0";
const NAME = /^[A-Za-z0-9_-]{1,32}$/;

const text = new TextEncoder();

function bytesOf(part: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(part.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
}

function partOf(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

type Block = { id: string; rights?: { verbs: string[]; worlds?: string[] | null; until?: number | null }; narrowing?: Narrowing };

function blocksOf(token: string): Block[] | undefined {
  const [form, key, ...rest] = token.split(".");
  if (token.length > TOKEN_MAX || form !== "whf1" || !key || rest.length < 2 || rest.length > BLOCKS_MAX + 1) return undefined;
  try {
    if (bytesOf(rest.pop() as string).length !== 32) return undefined;
    return rest.map((part) => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytesOf(part))) as Block);
  } catch {
    return undefined;
  }
}

/** What is left of a token's rights, or nothing if it is not one. */
export function heldBy(token: string): Held | undefined {
  const blocks = blocksOf(token);
  const first = blocks?.[0]?.rights;
  if (!blocks || !first || !Array.isArray(first.verbs)) return undefined;
  const within = (a: string[] | undefined, b: string[] | null | undefined) => (b == null ? a : a ? a.filter((x) => b.includes(x)) : b);
  const least = (a: number | undefined, b: number | null | undefined) => (b == null ? a : Math.min(a ?? Infinity, b));
  const held: Held = { id: blocks.map((b) => b.id).join("."), verbs: first.verbs, worlds: first.worlds ?? undefined, until: first.until ?? undefined };
  for (const { narrowing: by } of blocks.slice(1)) {
    held.verbs = within(held.verbs, by?.verbs) ?? [];
    held.worlds = within(held.worlds, by?.worlds);
    held.until = least(held.until, by?.until);
  }
  return held;
}

const sorted = (all: string[]) => [...new Set(all)].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));

/** The same token with fewer rights, under a name of its own. */
export async function narrow(token: string, name: string, by: Narrowing): Promise<string> {
  const blocks = blocksOf(token);
  if (!blocks) throw new Error("This is not a token that can be narrowed.");
  if (!NAME.test(name)) throw new Error("The name has up to 32 letters, digits, - and _.");
  if (blocks.length >= BLOCKS_MAX) throw new Error("This token has been narrowed too often.");
  // The core reads a block only in the one form in which it would write it: this order, and nothing that is absent.
  const block = text.encode(
    JSON.stringify({
      id: name,
      narrowing: {
        ...(by.verbs ? { verbs: VERBS.filter((v) => by.verbs?.includes(v)) } : {}),
        ...(by.worlds ? { worlds: sorted(by.worlds) } : {}),
        ...(by.tools ? { tools: by.tools } : {}),
        ...(by.until === undefined ? {} : { until: Math.floor(by.until) }),
      },
    }),
  );
  const at = token.lastIndexOf(".");
  const key = await crypto.subtle.importKey("raw", bytesOf(token.slice(at + 1)), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const prefix = text.encode(SEALED);
  const sealed = new Uint8Array(prefix.length + block.length);
  sealed.set(prefix);
  sealed.set(block, prefix.length);
  const seal = new Uint8Array(await crypto.subtle.sign("HMAC", key, sealed));
  const made = `${token.slice(0, at)}.${partOf(block)}.${partOf(seal)}`;
  if (made.length > TOKEN_MAX) throw new Error("This token would be too long.");
  return made;
}
