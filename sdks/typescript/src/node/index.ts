/** The package in Node, where a WebSocket may have to be brought along. */

import { useWebSocket } from "../links/websocket.js";

if (!("WebSocket" in globalThis)) {
  const { NodeWebSocket } = await import("./websocket.js");
  useWebSocket(NodeWebSocket);
}

export * from "../index.js";
