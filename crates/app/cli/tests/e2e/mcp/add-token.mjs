// Gives the referee, which knows no tokens, one for the core under test and for nobody else:
//
//   WHARF_URL=… WHARF_TOKEN=… node --import ./add-token.mjs …/.bin/conformance server …

import http from "node:http";
import { createRequire, syncBuiltinESMExports } from "node:module";

const { Agent, setGlobalDispatcher } = createRequire(process.argv[1])("undici");
const { origin } = new URL(process.env.WHARF_URL);
const mine = ["authorization", `Bearer ${process.env.WHARF_TOKEN}`];

// Headers come as one flat list, as pairs or as an object.
const withToken = (headers) => {
  if (Array.isArray(headers) && !Array.isArray(headers[0])) return [...headers, ...mine];
  const pairs = headers?.[Symbol.iterator] ? [...headers] : Object.entries(headers ?? {});
  return Object.fromEntries([...pairs, mine]);
};

const bearer = (dispatch) => (options, handler) => {
  const isMine = String(options.origin) === origin;
  return dispatch(isMine ? { ...options, headers: withToken(options.headers) } : options, handler);
};

setGlobalDispatcher(new Agent().compose(bearer));

// A few scenarios write their requests by hand.
const { request } = http;
http.request = (options, ...rest) => {
  const { hostname, host, port } = options;
  if (`http://${hostname ?? host}:${port}` !== origin) return request(options, ...rest);
  return request({ ...options, headers: withToken(options.headers) }, ...rest);
};
syncBuiltinESMExports();
