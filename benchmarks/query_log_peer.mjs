// The same job written without care in Node, row by row: what a first script would do.
// It holds the whole log in memory, is not strict (of a repeated key it takes the last), and looks for contacts with one
// regular expression instead of our screen. So it does less than the real thing, and the comparison favours it.
//   node query_log_peer.mjs LOG TARGET AS_OF
import { createHash, createHmac } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const [log, target, asOf] = process.argv.slice(2);
const key = Buffer.from(Array.from({ length: 32 }, (_, at) => at));
const now = Date.parse(asOf);
const fresh = 35 * 86_400_000;
const results = new Set(["answered", "refused", "failed"]);
const contact = /[\w.+-]+@[\w-]+\.[\w.-]+|https?:\/\/\S+@|\b(?:\d{1,3}\.){3}\d{1,3}\b|\+?\d[\d ().-]{7,}\d/;

function* rows(text) {
  if (text.startsWith("[")) {
    // One row with NaN would fail the whole array; in lines it fails its own line.
    yield* JSON.parse(text.replaceAll(":NaN", ":null"));
    return;
  }
  for (const line of text.split("\n")) {
    if (line === "") continue;
    try {
      yield JSON.parse(line);
    } catch {
      yield null;
    }
  }
}

function outcome(row) {
  if (row === null || typeof row !== "object") return "malformed";
  const { queryId, question, askedAt, outcome: result, consent } = row;
  const asked = Date.parse(askedAt);
  if (typeof queryId !== "string" || typeof question !== "string" || Number.isNaN(asked)) return "malformed";
  if (!results.has(result) || !String(askedAt).endsWith("Z")) return "malformed";
  if (consent == null) return "missing-consent";
  if (typeof consent.granted !== "boolean" || !(Date.parse(consent.recordedAt) <= asked)) return "malformed";
  if (!consent.granted) return "missing-consent";
  if (consent.contract !== "research-ai-evaluation-v1") return "wrong-consent-contract";
  if (result === "failed") return "unsuccessful";
  if (asked > now) return "future";
  if (now - asked > fresh) return "stale";
  if (contact.test(question.normalize("NFKC"))) return "contact-bearing";
  if (normal(question) === "") return "empty-question";
  return [...question].length > 1000 ? "over-length" : "eligible";
}

function normal(question) {
  return question.normalize("NFKC").toLowerCase().split(/\s+/).join(" ").replace(/[.?! ]+$/, "").trim();
}

const data = readFileSync(log);
createHash("sha256").update(data).digest("hex");
const counts = {};
const best = new Map();
let count = 0;
for (const row of rows(data.toString("utf8"))) {
  count += 1;
  const found = outcome(row);
  counts[found] = (counts[found] ?? 0) + 1;
  if (found !== "eligible") continue;
  const form = createHash("sha256").update(normal(row.question)).digest("hex");
  const asked = Date.parse(row.askedAt);
  const held = best.get(form);
  if (held === undefined || asked < held.asked) best.set(form, { asked, id: row.queryId, question: row.question });
}
const cases = [...best.values()].map(({ id, question }) => ({
  caseId: `case-${createHmac("sha256", key).update(id).digest("hex").slice(0, 20)}`,
  question,
}));
cases.sort((one, other) => (one.caseId < other.caseId ? -1 : 1));
writeFileSync(target, JSON.stringify({ cases, version: 1 }));
console.log(count);
