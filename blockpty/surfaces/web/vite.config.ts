import { defineConfig } from "vite";

// Output goes where hatch_build.py says. No source maps and no inlined assets: fonts come from 'self'.
export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: process.env.BLOCKPTY_PAGE_OUT ?? "../../_page",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    rolldownOptions: { input: ["index.html", "embed.html"] },
    license: { fileName: "licences.txt" },
  },
});
