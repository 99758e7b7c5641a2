/**
 * The package in Node, with a WebSocket of its own: older versions have none, and that of newer
 * ones does not say why a server refused it.
 */

import { useWebSocket } from "../links/websocket.js";
import { NodeWebSocket } from "./websocket.js";

useWebSocket(NodeWebSocket);

export * from "../index.js";
