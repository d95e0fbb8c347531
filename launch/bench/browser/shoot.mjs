// The browser side of the benchmark: opens page.html with the scene of a folder and answers one JSON line per
// line on stdin. {"do": "move", "points": [[x,y,z], ...]} moves the gripper to each, or with "look" the viewport's
// camera, and takes a picture of each; with "loop": true the page draws all the time meanwhile: {"ms": [...], "bytes": [...], "distinct": n}. {"keep": path} writes a PNG of the page as it is: {}.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [, , folder, quality] = process.argv;
const here = new URL(".", import.meta.url).pathname;
const files = {
  "/": [here, "page.html", "text/html"],
  "/page.js": [here, "page.js", "text/javascript"],
  "/three.module.js": [here, "node_modules/three/build/three.module.js", "text/javascript"],
  "/three.core.js": [here, "node_modules/three/build/three.core.js", "text/javascript"],
  "/scene.json": [folder, "scene.json", "application/json"],
  "/cloud.bin": [folder, "cloud.bin", "application/octet-stream"],
  "/feed0.jpg": [folder, "feed0.jpg", "image/jpeg"],
  "/feed1.jpg": [folder, "feed1.jpg", "image/jpeg"],
};

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  headless: true,
  args: [
    "--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
  ],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
page.on("pageerror", (e) => console.error(`page: ${e}`));
page.on("console", (m) => m.type() === "error" && console.error(`page: ${m.text()}`));
await page.route("**/*", async (route) => {
  const f = files[new URL(route.request().url()).pathname];
  if (!f) return route.fulfill({ status: 404 });
  return route.fulfill({ body: await readFile(`${f[0]}/${f[1]}`), contentType: f[2] });
});
await page.goto("http://bench.invalid/");
await page.waitForFunction("globalThis.ready === true", null, { timeout: 120_000 });
say({ renderer: await page.evaluate("about()"), version: browser.version() });

for await (const line of createInterface({ input: process.stdin })) {
  const ask = JSON.parse(line);
  if (ask.keep) {
    await page.screenshot({ type: "png", path: ask.keep });
    say({});
    continue;
  }
  if (ask.loop) await page.evaluate("loop(true)");
  const ms = [], bytes = [], seen = new Set();
  for (const p of ask.points) {
    const t = performance.now();
    await page.evaluate(([what, p]) => globalThis[what](p), [ask.do, p]);
    const jpeg = await page.screenshot({ type: "jpeg", quality: Number(quality) });
    ms.push(performance.now() - t);
    bytes.push(jpeg.length);
    seen.add(createHash("sha256").update(jpeg).digest("hex"));
  }
  if (ask.loop) await page.evaluate("loop(false)");
  await page.evaluate("rest()");
  say({ ms, bytes, distinct: seen.size });
}
await browser.close();

function say(x) {
  process.stdout.write(JSON.stringify(x) + "\n");
}
