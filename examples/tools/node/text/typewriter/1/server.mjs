// A tool server for Wharf in plain Node: node server.mjs --port 8080 [--token-file FILE]
//
// tool.mjs      the tool itself
// runs.mjs      runs, and who watches them
// files.mjs     what inputs refer to, and where outputs go
// websocket.mjs frames on the wire

import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

import { attach, stopAll, working } from "./runs.mjs";
import { accept } from "./websocket.mjs";

const SUBPROTOCOL = "theory.run.v1";
const FIRST_FRAME_MS = 10_000;
const DRAIN_MS = 5_000;

const { values: options } = parseArgs({
  options: { port: { type: "string", default: "0" }, "token-file": { type: "string" } },
});
const sha256 = (data) => createHash("sha256").update(data).digest();
const token = options["token-file"] && readFileSync(options["token-file"], "utf8").trim();
const digest = sha256(readFileSync(new URL("tool.mjs", import.meta.url))).toString("hex");
let draining = false;

const server = createServer((request, response) => {
  const answer = (status, body) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(body && JSON.stringify(body));
  };
  const path = request.url.split("?")[0];
  if (path === "/run") return answer(426);
  if (path !== "/healthz") return answer(404);
  if (request.method !== "GET") return answer(405);
  answer(draining ? 503 : 200, { ok: !draining, digest });
});

server.on("upgrade", (request, socket, head) => {
  const refuse = (status) => socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`);
  const offered = (request.headers["sec-websocket-protocol"] ?? "").split(",");
  socket.on("error", () => {});
  if (request.url.split("?")[0] !== "/run") return refuse("404 Not Found");
  if (!mayEnter(request.headers.authorization)) return refuse("401 Unauthorized");
  if (!offered.some((name) => name.trim() === SUBPROTOCOL) || !request.headers["sec-websocket-key"]) {
    return refuse("400 Bad Request");
  }
  serve(request, socket, head);
});

function mayEnter(header = "") {
  return !token || timingSafeEqual(sha256(header), sha256(`Bearer ${token}`));
}

/** One connection: the first frame asks for a run, later ones may cancel it. */
function serve(request, socket, head) {
  let run;
  const connection = accept(request, socket, head, SUBPROTOCOL, {
    message(text) {
      clearTimeout(patience);
      let frame;
      try {
        frame = JSON.parse(text);
      } catch {
        return run || connection.close(1007, "a frame is not JSON");
      }
      if (run) return frame?.kind === "Cancel" && run.stop("ERR_CANCELED");
      if (frame?.kind !== "Request") return connection.close(1002, "the first frame is no Request");
      const id = frame.control?.run_id;
      if (typeof id !== "string" || id === "") return connection.close(1008, "run_id is missing");
      run = attach(frame, watcher, draining);
    },
    gone() {
      clearTimeout(patience);
      run?.leave(watcher);
    },
  });
  const watcher = {
    send: (frame) => connection.send(typeof frame === "string" ? frame : JSON.stringify(frame)),
    close: (code, reason) => connection.close(code, reason),
  };
  const patience = setTimeout(() => connection.close(1008, "no request came"), FIRST_FRAME_MS);
}

process.on("SIGTERM", () => {
  draining = true;
  setTimeout(stopAll, DRAIN_MS);
  setInterval(() => working() || setTimeout(() => process.exit(0), 100), 50);
});

server.listen(Number(options.port), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
