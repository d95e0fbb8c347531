// The page in a real browser, against the daemon on the twin. CHROMIUM names another browser than Debian's.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { chromium } from "playwright-core";

const root = path.resolve(import.meta.dirname, "../../..");
let browser;
before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: process.getuid() === 0 ? ["--no-sandbox"] : [],
  });
});
after(() => browser.close());

// daemon runs viad until stop is called; it resolves when the daemon says that it is ready.
async function daemon(file) {
  const state = mkdtempSync(path.join(tmpdir(), "viad-page-"));
  const p = spawn(path.join(root, "bin/viad"), ["run", path.join(root, "launch", file), "--listen", "127.0.0.1:0", "--state-dir", state]);
  let out = "", err = "";
  p.stderr.on("data", d => { err += d; });
  const ready = new Promise((resolve, reject) => {
    p.stdout.on("data", d => {
      out += d;
      if (/default_tools_approval_mode/.test(out)) resolve();
    });
    p.on("exit", code => reject(new Error(`viad ended with ${code}: ${err}`)));
  });
  await ready;
  const token = readFileSync(path.join(state, "token"), "utf8").trim();
  const link = /page +(\S+)/.exec(out)[1];
  const gone = new Promise(resolve => p.on("exit", resolve));
  const stop = async () => {
    p.kill("SIGTERM");
    const code = await gone;
    rmSync(state, { recursive: true, force: true });
    return code;
  };
  return { link, token, url: new URL(link).origin, stop };
}

// call is one tool call over plain HTTP.
async function call(d, name, args = {}) {
  const post = async (body, session) => {
    const r = await fetch(`${d.url}/mcp`, {
      method: "POST", body: JSON.stringify({ jsonrpc: "2.0", ...body }),
      headers: {
        "content-type": "application/json", accept: "application/json, text/event-stream", authorization: `Bearer ${d.token}`,
        ...(session ? { "mcp-session-id": session, "mcp-protocol-version": "2025-06-18" } : {}),
      },
    });
    return { session: r.headers.get("mcp-session-id") ?? session, text: await r.text() };
  };
  const { session } = await post({ id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "page-test", version: "1" } } });
  await post({ method: "notifications/initialized" }, session);
  return (await post({ id: 2, method: "tools/call", params: { name, arguments: args } }, session)).text;
}

const sizes = (page, box) => page.$$eval(`#${box} img`, imgs => imgs.map(i => `${i.naturalWidth}x${i.naturalHeight}`));
const waitFor = (page, box, want) => page.waitForFunction(
  ([b, w]) => Array.from(document.querySelectorAll(`#${b} img`), i => `${i.naturalWidth}x${i.naturalHeight}`).join(" ") === w, [box, want]);

async function open(d) {
  const context = await browser.newContext({ viewport: { width: 1600, height: 900 } });
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", e => errors.push(String(e)));
  page.on("console", m => { if (m.type() === "error") errors.push(m.text()); });
  await page.goto(d.link);
  await page.waitForSelector("#link.good");
  return { context, page, errors };
}

const keep = (page, name) => process.env.SHOTS ? page.screenshot({ path: path.join(process.env.SHOTS, name) }) : undefined;

describe("the page of the arm", () => {
  let d;
  before(async () => { d = await daemon("twin-franka.yaml"); });
  after(async () => { assert.equal(await d.stop(), 0); });

  it("takes the token out of the address, into a cookie that scripts cannot read", async () => {
    const { context, page, errors } = await open(d);
    assert.equal(page.url(), `${d.url}/`);
    const [cookie] = await context.cookies();
    assert.ok(cookie.httpOnly && cookie.sameSite === "Strict");
    assert.ok(!cookie.value.includes(d.token));
    assert.equal(await page.evaluate(() => document.cookie), "");
    assert.deepEqual(errors, []);
    await context.close();
  });

  it("shows a login to a stranger, and lets a pasted token in", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const r = await page.goto(`${d.url}/?token=wrong`);
    assert.equal(r.status(), 401);
    assert.equal((await context.cookies()).length, 0);
    await page.fill("input[name=token]", d.token);
    await page.click("button");
    await page.waitForSelector("#link.good");
    await context.close();
  });

  it("shows the live scene, then what the agent was sent, with calls and state", async () => {
    const { context, page, errors } = await open(d);
    await page.click("[data-view=live]");
    await waitFor(page, "live", "1280x800");
    await call(d, "gripper_translate", { d_z: -0.05 });
    await call(d, "gripper_translate", { d_z: 5 });
    await page.click("[data-view=shown]");
    await waitFor(page, "shown", "1280x800");
    await page.waitForSelector("#calls .refused");
    const calls = await page.$$eval("#calls li", ls => ls.map(l => [l.className, l.querySelector(".tool").textContent, l.querySelector("code").textContent]));
    assert.deepEqual(calls.slice(0, 2), [["refused", "gripper_translate", '{"d_z":5}'], ["", "gripper_translate", '{"d_z":-0.05}']]);
    const state = await page.textContent("#state");
    for (const word of ["ready", "a gripper target", "nothing has moved yet", "episode-001"]) assert.ok(state.includes(word), `${word} in ${state}`);
    assert.equal(await page.textContent("#armed"), "armed");
    await keep(page, "page-franka.png");
    await call(d, "execute_waypoint");
    await page.waitForFunction(() => document.querySelector("#state").textContent.includes("reached in"));
    assert.deepEqual(errors, []);
    await context.close();
  });

  it("stops a motion with the button, and with Escape", async () => {
    const { context, page } = await open(d);
    for (let i = 0; i < 3; i++) await call(d, "gripper_translate", { d_x: 0.08, d_y: -0.1 });
    const moving = call(d, "execute_waypoint");
    await page.waitForSelector("#moving.warn");
    await page.click("#stop");
    await page.waitForSelector("#alerts .good");
    assert.match(await page.textContent("#alerts .good"), /stopped, confirmed/);
    assert.match(await moving, /stopped_short|stopped/);
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => /stopped, confirmed/.test(document.querySelector("#alerts").textContent));
    await context.close();
  });

  it("lets no other site stop the robot, and a bearer from anywhere", async () => {
    const post = headers => fetch(`${d.url}/api/stop`, { method: "POST", headers });
    assert.equal((await post({})).status, 401);
    assert.equal((await post({ origin: "https://evil.example", authorization: `Bearer ${d.token}` })).status, 403);
    const r = await post({ authorization: `Bearer ${d.token}` });
    assert.deepEqual([r.status, (await r.json()).note], [200, "stopped, confirmed"]);
    const { context } = await open(d);
    const [c] = await context.cookies();
    const cookie = `${c.name}=${c.value}`;
    assert.equal((await post({ cookie })).status, 403, "a cookie without an origin");
    assert.equal((await post({ cookie, origin: d.url })).status, 200);
    await context.close();
  });

  it("has switches for operators, and shows what they did", async () => {
    const { context, page, errors } = await open(d);
    assert.equal(await page.textContent("#you"), "Switches: developer, operator");
    const press = async (what, says) => {
      await page.click(`#switches [data-act=${what}]`);
      await page.waitForFunction(w => new RegExp(w).test(document.querySelector("#alerts .good")?.textContent ?? ""), says);
    };
    const off = what => page.isDisabled(`#switches [data-act=${what}]`);
    const chip = want => page.waitForFunction(w => document.querySelector("#armed").textContent === w, want);
    await press("estop", "latched");
    await chip("latched");
    assert.ok(await off("arm") && !await off("clear"));
    await keep(page, "page-latched.png");
    await press("clear", "cleared");
    await chip("disarmed");
    await press("arm", "^armed$");
    await chip("armed");
    await call(d, "gripper_translate", { d_z: -0.01 });
    await page.waitForSelector("#switches [data-act=takeover]:disabled"); // one's own seat is nothing to take
    await press("free", "the seat is free");
    await page.waitForSelector("#switches [data-act=takeover]:not(:disabled)");
    await press("takeover", "developer has the seat");
    await page.waitForFunction(() => /Seatdeveloper/.test(document.querySelector("#state").textContent));
    await press("free", "the seat is free");
    assert.deepEqual(errors, []);
    await context.close();
  });

  it("does nothing for a form or a script of another site, in the operator's own browser", async () => {
    const { context } = await open(d);
    const evil = createServer((req, res) => {
      res.writeHead(200, { "content-type": "text/html" });
      res.end(`<form method=post target=f><button>win</button></form><iframe name=f></iframe>`);
    });
    await new Promise(resolve => evil.listen(0, "localhost", resolve)); // another site than 127.0.0.1
    const page = await context.newPage();
    for (const what of ["disarm", "estop", "takeover", "stop"]) {
      await page.goto(`http://localhost:${evil.address().port}/`);
      await page.evaluate(([url, w]) => { document.querySelector("form").action = `${url}/api/${w}`; }, [d.url, what]);
      const answer = page.waitForResponse(r => r.url() === `${d.url}/api/${what}`);
      await page.click("button");
      assert.ok((await answer).status() >= 400, `${what} by a form`);
      const fetched = await page.evaluate(([url, w]) => fetch(`${url}/api/${w}`, { method: "POST", credentials: "include", mode: "no-cors" })
        .then(r => r.type, () => "failed"), [d.url, what]);
      assert.ok(["opaque", "failed"].includes(fetched));
      assert.equal(await page.evaluate(([url, w]) => fetch(`${url}/api/${w}`, { method: "POST", credentials: "include", headers: { "X-Viad-Page": "1" } })
        .then(() => "read", () => "failed"), [d.url, what]), "failed");
    }
    evil.close();
    evil.closeAllConnections();
    const own = await context.newPage();
    await own.goto(d.url);
    await own.waitForSelector("#link.good");
    assert.equal(await own.textContent("#armed"), "armed");
    assert.ok(!(await own.textContent("#state")).includes("Seatdeveloper"));
    await context.close();
  });

  it("fits a telephone", async () => {
    const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
    const page = await context.newPage();
    await page.goto(d.link);
    await page.waitForSelector("#link.good");
    await waitFor(page, "shown", "1280x800");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "no sideways scrolling");
    const stop = await page.locator("#stop").boundingBox();
    assert.ok(stop.width > 300 && stop.height > 50 && stop.y < 200);
    await keep(page, "page-telephone.png");
    await context.close();
  });
});

describe("the page of the mobile robot", () => {
  it("shows two views, and says so when the daemon goes", async () => {
    const d = await daemon("twin-stretch4.yaml");
    const { context, page } = await open(d);
    await page.click("[data-view=live]");
    await waitFor(page, "live", "960x720 640x400");
    await call(d, "nav_rotate", { angle_deg: 20 });
    await page.click("[data-view=shown]");
    await waitFor(page, "shown", "960x720 640x640");
    await keep(page, "page-stretch4.png");
    await call(d, "observe");
    await waitFor(page, "shown", "960x720 640x400");
    assert.deepEqual((await sizes(page, "shown")).length, 2);
    assert.equal(await d.stop(), 0);
    await page.waitForSelector("#link.bad");
    assert.match(await page.textContent("#alerts"), /No connection since/);
    await keep(page, "page-lost.png");
    await context.close();
  });
});
