/// <reference types="vitest/config" />
import { defineConfig } from "vite";

// In development the page may talk to a core on another port. The token is taken from the environment and never
// becomes part of a build.
const core = process.env["WHARF_URL"];
const token = process.env["WHARF_TOKEN"];
const target = core && {
  target: core,
  changeOrigin: true,
  ws: true,
  configure: (proxy: { on(event: string, act: (request: { setHeader(k: string, v: string): void; removeHeader(k: string): void }) => void): void }) => {
    const add = (request: { setHeader(k: string, v: string): void; removeHeader(k: string): void }) => {
      if (token) request.setHeader("authorization", `Bearer ${token}`);
      request.removeHeader("origin");
    };
    proxy.on("proxyReq", add);
    proxy.on("proxyReqWs", add);
  },
};

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    rollupOptions: { input: { index: "index.html" }, output: { hashCharacters: "hex" } },
  },
  worker: { format: "es" },
  server: target ? { proxy: { "/v1": target, "/graphql": target, "/docs": target, "/openapi.json": target } } : {},
  test: { include: ["test/**/*.test.{ts,mjs}"], environment: "node" },
});
