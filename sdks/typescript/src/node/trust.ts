/** Connections that go to a core whose certificate is known. Nothing is sent before that is seen. */

import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { isIP } from "node:net";
import { Readable } from "node:stream";
import { connect as tlsConnect, type TLSSocket } from "node:tls";

import { Fault } from "../fault.js";

const PEM = /-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g;
const CONNECT_MS = 15_000;

/** @internal What a core's certificate is trusted by. */
export class Trust {
  /** Certificates that may be the core's own, whatever name they are for. */
  readonly own: readonly Buffer[];
  /** Certificates of which one may have signed the core's. */
  readonly ca: string | undefined;

  private constructor(own: readonly Buffer[], ca: string | undefined) {
    this.own = own;
    this.ca = ca;
  }

  /** The certificates of a file, and the one in a home whose core it is; none of both is what the system trusts. */
  static of(ca: string | undefined, home: string | undefined): Trust | undefined {
    const text = ca ? read(ca) : undefined;
    const own = text === undefined ? [] : certificates(ca!, text);
    if (home !== undefined && existsSync(home)) own.push(...certificates(home, read(home)));
    return own.length > 0 ? new Trust(own, text) : undefined;
  }

  /** A connection to a core that is trusted. */
  connect(address: URL): Promise<TLSSocket> {
    const host = address.hostname.replace(/^\[|\]$/g, "");
    const port = Number(address.port || 443);
    const servername = isIP(host) ? "" : host;
    return new Promise((resolve, reject) => {
      const ca = this.ca === undefined ? {} : { ca: this.ca };
      const socket = tlsConnect({ host, port, servername, rejectUnauthorized: false, ...ca });
      socket.setTimeout(CONNECT_MS, () => socket.destroy(new Error("The connection did not open in time.")));
      socket.once("error", reject);
      socket.once("secureConnect", () => {
        socket.setTimeout(0).removeAllListeners("timeout");
        const { raw } = socket.getPeerCertificate();
        const isOwn = this.own.some((one) => raw?.equals(one));
        const isSigned = this.ca !== undefined && socket.authorized;
        if (isOwn || isSigned) return resolve(socket.off("error", reject));
        socket.destroy();
        reject(new Fault("transport.lost", "The certificate of the other side is not the core's.", { retryable: true }));
      });
    });
  }
}

/** @internal `fetch` over such connections, as far as this package uses it. */
export function trustingFetch(trust: Trust): typeof fetch {
  return async (input, init = {}) => {
    const address = new URL(input instanceof Request ? input.url : input);
    init.signal?.throwIfAborted();
    const socket = await trust.connect(address);
    const body = typeof init.body === "string" ? init.body : undefined;
    const headers: Record<string, string> = { connection: "close" };
    new Headers(init.headers).forEach((value, name) => (headers[name] = value));
    if (body !== undefined) headers["content-length"] = String(Buffer.byteLength(body));
    const options: RequestOptions = { method: init.method ?? "GET", headers, createConnection: () => socket };
    if (init.signal) options.signal = init.signal;
    return new Promise((resolve, reject) => {
      const request = httpsRequest(address, options, (response) => {
        const status = response.statusCode ?? 500;
        const said = new Headers();
        for (const [name, value] of Object.entries(response.headers)) said.set(name, String(value));
        const none = status === 204 || status === 304;
        const stream = none ? null : (Readable.toWeb(response) as ReadableStream<Uint8Array>);
        if (none) response.resume();
        resolve(new Response(stream, { status, headers: said }));
      });
      request.on("error", reject);
      request.end(body);
    });
  };
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new Fault("config.invalid", `The certificates in ${path} cannot be read: ${(error as Error).message}.`);
  }
}

function certificates(path: string, text: string): Buffer[] {
  try {
    const found = [...text.matchAll(PEM)].map(([block]) => new X509Certificate(block).raw);
    if (found.length > 0) return found;
  } catch {
    throw new Fault("config.invalid", `The certificates in ${path} cannot be read.`);
  }
  throw new Fault("config.invalid", `${path} holds no certificate.`);
}
