import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// A server for `npm run dev` to talk to: `rival serve` on its default address, or RIVAL_URL.
const server = process.env.RIVAL_URL ?? "http://127.0.0.1:7400";

export default defineConfig({
  plugins: [react()],
  build: {
    target: "es2022",
    assetsInlineLimit: 0, // data: URLs would need a wider Content-Security-Policy
    modulePreload: { polyfill: false }, // an inline script, and no browser of ours needs it
  },
  server: {
    proxy: { "/api": server, "/openapi.json": server },
  },
  test: { include: ["src/**/*.test.ts"] },
});
