// Prints what the suites found below a folder, and fails on a failure or a warning. A scenario that asks for
// something this server does not declare (resources, logging) or for a fixture tool of the suite says so, and is counted as not applicable.
import fs from "node:fs";
import path from "node:path";

const notOurs = /Not testable|tool .test_\w+. not found|-32601: |(resources|logging|completions?|sampling) (is )?not supported|[Ff]ixture|does not (declare|support)/;
const count = { passed: 0, failed: 0, warnings: 0, skipped: 0, "not applicable": 0 };
let scenarios = 0;
for (const suite of fs.readdirSync(process.argv[2]).sort()) {
  for (const run of fs.readdirSync(path.join(process.argv[2], suite)).sort()) {
    const file = path.join(process.argv[2], suite, run, "checks.json");
    if (!fs.existsSync(file)) continue;
    scenarios++;
    const lines = [];
    let bad = false;
    for (const c of JSON.parse(fs.readFileSync(file, "utf8"))) {
      const why = `${c.id}: ${c.errorMessage || c.description}`.replace(/\s+/g, " ").slice(0, 300);
      if (c.status === "SUCCESS") count.passed++;
      else if (c.status === "SKIPPED") count.skipped++;
      else if ((c.status === "FAILURE" || c.status === "WARNING") && notOurs.test(c.errorMessage || "")) {
        count["not applicable"]++;
        lines.push(`     n/a  ${why}`);
      } else if (c.status === "FAILURE" || c.status === "WARNING") {
        bad = true;
        count[c.status === "FAILURE" ? "failed" : "warnings"]++;
        lines.push(`     ${c.status.slice(0, 4)} ${why}`);
      }
    }
    console.log([`${bad ? "✗" : "✓"} ${suite} ${run.replace(/^server-/, "").replace(/-20\d\d-\d\d-\d\dT.*/, "")}`, ...lines].join("\n"));
  }
}
console.log(Object.entries(count).map(([k, v]) => `${v} ${k}`).join(", "));
if (scenarios < 10) {
  console.log(`only ${scenarios} scenarios ran`);
  process.exit(1);
}
process.exit(count.failed + count.warnings ? 1 : 0);
