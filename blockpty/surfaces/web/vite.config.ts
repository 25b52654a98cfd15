import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

const FONTS = ["@fontsource-variable/inter", "@fontsource-variable/jetbrains-mono"];

// Vite lists the licences of scripts; those of the fonts have to go with them as well.
const fontLicences = {
  name: "font-licences",
  generateBundle() {
    const texts = FONTS.map((name) => `## ${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8")}`);
    this.emitFile({ type: "asset", fileName: "font-licences.txt", source: texts.join("\n") });
  },
};

// Addresses are relative: a proxy may put a path before ours. Output goes where hatch_build.py says. No source maps and no inlined assets: fonts come from 'self'.
export default defineConfig({
  base: "./",
  plugins: [fontLicences],
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
