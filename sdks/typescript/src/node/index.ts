/**
 * The package in Node, with a WebSocket of its own: older versions have none, and that of newer
 * ones does not say why a server refused it. Here a core is also found by its home.
 */

import { useFinder } from "../core.js";
import { useWebSocket } from "../links/websocket.js";
import { findCore } from "./find.js";
import { NodeWebSocket } from "./websocket.js";

useWebSocket(NodeWebSocket);
useFinder(findCore);

export * from "../index.js";
