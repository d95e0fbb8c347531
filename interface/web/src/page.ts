// The page: keeps a feed open, shows what comes, and stops the robot.

interface Status {
  name: string; robot: string; face: string; version: string; uptime_s: number;
  armed: boolean; latched?: string; moving: boolean; mode: string; fault?: string;
  state_age_s: number; scene_age_s: number; scene_seq: number;
  seat?: string; staged: string; last?: string; episode: number; record?: string; warnings?: string[];
}
interface Call { seq: number; at: string; principal: string; tool: string; args: string; text: string; refused: boolean; took_ms: number }
interface Person { name: string; role: string; operator: boolean }
interface State { status: Status; you: Person; calls?: Call[]; error?: string }
interface PictureHead { kind: "live" | "shown"; name: string; index: number; count: number; age_s: number }

const $ = (id: string): HTMLElement => {
  const e = document.getElementById(id);
  if (!e) throw new Error(`no element ${id}`);
  return e;
};
const make = (tag: string, cls: string, text: string): HTMLElement => {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  e.textContent = text;
  return e;
};

// Chips: the text, and how worried to be.
function chip(id: string, text: string, mood: "" | "good" | "warn" | "bad" = ""): void {
  const e = $(id);
  e.textContent = text;
  e.className = `chip ${mood}`;
}

const seconds = (s: number): string => s < 0 ? "none yet" : s < 10 ? `${s.toFixed(1)} s` : s < 120 ? `${Math.round(s)} s` : `${Math.round(s / 60)} min`;

let note: { text: string; good: boolean } | null = null;
let latest: State | null = null;
let lost = "";

function alerts(): void {
  const box = $("alerts");
  const lines: HTMLElement[] = [];
  if (lost) lines.push(make("p", "", lost));
  if (note) lines.push(make("p", note.good ? "good" : "", note.text));
  const s = latest?.status;
  if (s?.latched) lines.push(make("p", "", `Latched: ${s.latched}`));
  if (s?.fault) lines.push(make("p", "", `Fault: ${s.fault}`));
  for (const w of s?.warnings ?? []) lines.push(make("p", "", w));
  if (latest?.error) lines.push(make("p", "", `No live picture: ${latest.error}`));
  const text = (ns: Iterable<Element>): string => Array.from(ns, n => n.className + n.textContent).join("\n");
  if (text(box.children) !== text(lines)) box.replaceChildren(...lines);
}

function show(m: State): void {
  latest = { ...m };
  const s = m.status;
  $("name").textContent = s.name;
  $("robot").textContent = s.robot;
  document.title = `${s.moving ? "moving: " : ""}${s.name}`;
  chip("link", "connected", "good");
  chip("armed", s.latched ? "latched" : s.armed ? "armed" : "disarmed", s.latched ? "bad" : s.armed ? "good" : "warn");
  chip("moving", s.moving ? "moving" : "at rest", s.moving ? "warn" : "");
  chip("scene", `scene ${seconds(s.scene_age_s)} old`, s.scene_age_s < 0 || s.scene_age_s > 5 ? "warn" : "");
  chip("joints", `joints ${seconds(s.state_age_s)} old`, s.state_age_s < 0 || s.state_age_s > 0.25 ? "warn" : "");
  const rows: [string, string][] = [
    ["Body", s.mode], ["Seat", s.seat || "free"], ["Staged", s.staged], ["Outcome", s.last || "nothing has moved yet"],
    ["Episode", String(s.episode)], ["Record", s.record || "not recording"], ["viad", `${s.version}, up ${seconds(s.uptime_s)}`],
  ];
  $("state").replaceChildren(...rows.flatMap(([k, v]) => [make("dt", "", k), make("dd", "", v)]));
  switches(s, m.you);
  if (m.calls) calls(m.calls);
  alerts();
}

function calls(list: Call[]): void {
  $("calls").replaceChildren(...list.map(c => {
    const li = make("li", c.refused ? "refused" : "", "");
    const at = new Date(c.at).toLocaleTimeString();
    li.append(make("span", "meta", `${c.principal}, ${at}, ${Math.round(c.took_ms)} ms`), make("span", "tool", c.tool), " ");
    if (c.args !== "{}") li.append(make("code", "", c.args));
    li.append(make("div", "text", c.text));
    return li;
  }));
}

function picture(data: ArrayBuffer): void {
  const bytes = new Uint8Array(data);
  const cut = bytes.indexOf(10);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(0, cut))) as PictureHead;
  const box = $(head.kind);
  for (const e of box.querySelectorAll(".empty")) e.remove();
  const figures = box.querySelectorAll("figure");
  for (let i = head.count; i < figures.length; i++) figures[i]?.remove();
  let f = figures[head.index];
  if (!f) {
    f = document.createElement("figure");
    f.append(new Image(), document.createElement("figcaption"));
    box.append(f);
  }
  f.className = head.name;
  f.dataset.seen = String(Date.now() - 1000 * head.age_s);
  const img = f.querySelector("img");
  const caption = f.querySelector("figcaption");
  if (!img || !caption) return;
  caption.textContent = head.name === "ui" ? "" : head.name;
  img.alt = `${head.kind === "live" ? "live" : "shown to the agent"}: ${head.name}`;
  const url = URL.createObjectURL(new Blob([bytes.subarray(cut + 1)], { type: "image/jpeg" }));
  const old = img.src;
  img.onload = () => { if (old) URL.revokeObjectURL(old); };
  img.src = url;
  captionText();
}

function captionText(): void {
  const view = $("shown").hidden ? "live" : "shown";
  const f = $(view).querySelector("figure");
  const seen = Number(f?.dataset.seen ?? 0);
  $("caption").textContent = !seen ? "" : view === "live" ? "live" : `sent ${seconds((Date.now() - seen) / 1000)} ago`;
}

function choose(view: string): void {
  for (const b of document.querySelectorAll<HTMLButtonElement>("nav button")) b.ariaPressed = String(b.dataset.view === view);
  $("shown").hidden = view !== "shown";
  $("live").hidden = view !== "live";
  captionText();
}

// What each switch says while it works.
const doing: Record<string, string> = {
  stop: "Stopping…", estop: "Stopping and latching…", clear: "Clearing…", arm: "Arming…", disarm: "Disarming…", takeover: "Taking the seat…", free: "Freeing the seat…",
};

function switches(s: Status, you: Person): void {
  $("you").textContent = `Switches: ${you.name}, ${you.role}`;
  const off: Record<string, boolean> = {
    clear: !s.latched && s.mode !== "runstopped", arm: s.armed || !!s.latched, disarm: !s.armed, takeover: s.seat === you.name, free: !s.seat,
  };
  for (const b of document.querySelectorAll<HTMLButtonElement>("#switches button")) {
    b.hidden = b.dataset.operator !== undefined && !you.operator;
    b.disabled = off[b.dataset.act ?? ""] ?? false;
  }
}

// act asks the daemon for something that a person does to the robot, and shows the answer.
async function act(what: string): Promise<void> {
  const stops = what === "stop" || what === "estop";
  note = { text: doing[what] ?? what, good: false };
  alerts();
  try {
    const r = await fetch(`api/${what}`, { method: "POST", headers: { "X-Viad-Page": "1" } });
    const a = await r.json() as { ok: boolean; note?: string; error?: string };
    note = a.ok ? { text: a.note || "Done.", good: true } : { text: `${a.error ?? "That failed."}${stops ? " Use the e-stop beside the robot." : ""}`, good: false };
  } catch (e) {
    note = { text: `This did not reach the daemon (${String(e)}). ${stops ? "Use the e-stop beside the robot, or" : "Try"} viactl ${what}.`, good: false };
  }
  alerts();
  const mine = note;
  setTimeout(() => { if (note === mine && (mine.good || !stops)) { note = null; alerts(); } }, 8000);
}

// The feed closes while the page is hidden, so that nothing is painted for nobody.
let socket: WebSocket | null = null;
let retry = 500;
function connect(): void {
  if (socket || document.hidden) return;
  const s = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/feed`);
  s.binaryType = "arraybuffer";
  socket = s;
  s.onmessage = e => {
    retry = 500;
    lost = "";
    document.body.classList.remove("lost");
    if (typeof e.data === "string") show(JSON.parse(e.data) as State);
    else picture(e.data as ArrayBuffer);
  };
  s.onclose = () => {
    if (socket !== s) return;
    socket = null;
    if (document.hidden) return;
    chip("link", "no connection", "bad");
    if (!lost) lost = `No connection since ${new Date().toLocaleTimeString()}. Pictures and state are old. If this stays, open the daemon's link again.`;
    document.body.classList.add("lost");
    alerts();
    setTimeout(connect, retry);
    retry = Math.min(retry * 2, 5000);
  };
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    const s = socket;
    socket = null;
    s?.close();
  } else connect();
});
$("stop").addEventListener("click", () => void act("stop"));
document.addEventListener("keydown", e => { if (e.key === "Escape") void act("stop"); });
for (const b of document.querySelectorAll<HTMLButtonElement>("#switches button")) b.addEventListener("click", () => void act(b.dataset.act ?? ""));
for (const b of document.querySelectorAll<HTMLButtonElement>("nav button")) b.addEventListener("click", () => choose(b.dataset.view ?? "shown"));
setInterval(captionText, 1000);
connect();
