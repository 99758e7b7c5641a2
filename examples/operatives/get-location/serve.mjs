// Serves the page and the package it uses: node serve.mjs [--port 8321]

import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = fileURLToPath(new URL(".", import.meta.url));
const sdk = fileURLToPath(new URL("../../../sdks/typescript/dist/src/", import.meta.url));
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript" };

const { values } = parseArgs({ options: { port: { type: "string", default: "8321" } } });

if (!existsSync(join(sdk, "index.js"))) {
  console.error("The package is not built yet. Run: npm --prefix ../../../sdks/typescript ci && npm --prefix ../../../sdks/typescript run build");
  process.exit(1);
}

const server = createServer((request, response) => {
  const path = normalize(new URL(request.url, "http://page").pathname);
  const inSdk = path.startsWith("/wharf-sdk/");
  const file = inSdk ? join(sdk, path.slice("/wharf-sdk".length)) : join(here, path === "/" ? "index.html" : path);
  const type = TYPES[extname(file)];
  if (request.method !== "GET" || !type || !existsSync(file)) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, {
    "content-type": `${type}; charset=utf-8`,
    "content-security-policy": "default-src 'self'; connect-src *; img-src data:",
    "cache-control": "no-store",
  });
  createReadStream(file).pipe(response);
});

server.listen(Number(values.port), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
