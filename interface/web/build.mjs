// Makes dist from src: one script, one style sheet, two pages. The same sources give the same bytes, so that
// CI can check that what is committed is current.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
mkdirSync("dist");
await build({
  entryPoints: { page: "src/page.ts" },
  outdir: "dist",
  bundle: true,
  minify: true,
  target: "es2022",
  legalComments: "none",
  logLevel: "warning",
});
await build({ entryPoints: { page: "src/page.css" }, outdir: "dist", minify: true, logLevel: "warning" });
for (const f of ["index.html", "login.html"]) copyFileSync(`src/${f}`, `dist/${f}`);
