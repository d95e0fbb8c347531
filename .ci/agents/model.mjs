// A stand-in for a model behind the OpenAI Responses API, on loopback: it plays a fixed list of tool calls, so
// that a real agent harness can be driven without an account. usage: node model.mjs LOG CALLS.json
// It prints its address, and appends to LOG what the harness answers to each call, one JSON object per line.
import { appendFileSync, readFileSync } from "node:fs";
import http from "node:http";

const [log, calls] = [process.argv[2], JSON.parse(readFileSync(process.argv[3], "utf8"))];

// flat is the tools that the harness offers, with the namespace that some of them stand in.
const flat = tools => (tools ?? []).flatMap(t => t.type === "namespace" ? t.tools.map(x => ({ namespace: t.name, name: x.name })) : t.name ? [{ name: t.name }] : []);

http.createServer(async (req, res) => {
  const chunks = [];
  for await (const c of req) chunks.push(c);
  if (!req.url.endsWith("/responses")) {
    res.writeHead(200, { "content-type": "application/json" });
    return res.end(JSON.stringify({ object: "list", data: [], models: [] }));
  }
  const body = JSON.parse(Buffer.concat(chunks).toString());
  const outputs = body.input.filter(i => i.type === "function_call_output");
  const last = outputs.at(-1);
  if (last) {
    const parts = Array.isArray(last.output) ? last.output : [{ text: String(last.output) }];
    appendFileSync(log, JSON.stringify({
      tool: calls[outputs.length - 1]?.tool, pictures: parts.filter(p => p.type === "input_image").length, text: parts.map(p => p.text ?? "").join("\n"),
    }) + "\n");
  }
  const next = calls[outputs.length];
  let item = { type: "message", id: "msg", role: "assistant", status: "completed", content: [{ type: "output_text", text: "done", annotations: [] }] };
  if (next) {
    const t = flat(body.tools).find(x => x.name === next.tool || x.name.endsWith(`__${next.tool}`));
    if (t) item = { type: "function_call", id: `fc_${outputs.length}`, call_id: `call_${outputs.length}`, ...t, arguments: JSON.stringify(next.args ?? {}), status: "completed" };
    else appendFileSync(log, JSON.stringify({ tool: next.tool, text: "the harness does not offer this tool" }) + "\n");
  }
  const response = { id: `resp_${outputs.length}`, object: "response", created_at: 1, status: "completed", model: body.model, output: [item],
    usage: { input_tokens: 1, input_tokens_details: { cached_tokens: 0 }, output_tokens: 1, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2 } };
  res.writeHead(200, { "content-type": "text/event-stream" });
  const send = (type, data) => res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  send("response.created", { response: { ...response, status: "in_progress", output: [] } });
  send("response.output_item.added", { output_index: 0, item });
  send("response.output_item.done", { output_index: 0, item });
  send("response.completed", { response });
  res.end();
}).listen(0, "127.0.0.1", function () { console.log(`http://127.0.0.1:${this.address().port}`); });
