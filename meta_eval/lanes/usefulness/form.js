"use strict";
// One screen a question. The state is the document that is saved; nothing is sent or stored anywhere else.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { sheet, mode } = data;
  const root = document.getElementById("form");
  const scoring = mode === "score";
  let at = 0;
  let unsaved = false;

  const place = (entry, delivery) => [entry.setId, entry.questionId, delivery.label].join("/");
  const blank = (entry, delivery) => {
    const where = { setId: entry.setId, questionId: entry.questionId, label: delivery.label };
    if (!scoring) return { ...where, disposition: null, cause: null, rationale: "" };
    const criteria = Object.fromEntries(sheet.criteria.map(({ name }) => [name, null]));
    return {
      ...where, criteria, clauseCoverage: null, sourceSupport: null, firstSourceRelevant: undefined,
      firstSourceDecisive: undefined, essentialLimits: null, useful: null, defects: [], reason: "",
    };
  };
  const rows = new Map();
  for (const entry of sheet.entries)
    for (const delivery of entry.deliveries) rows.set(place(entry, delivery), blank(entry, delivery));

  const make = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (value === true) node.setAttribute(key, "");
      else if (value !== false && value !== undefined) node.setAttribute(key, value);
    }
    node.append(...children.filter((child) => child !== null));
    return node;
  };
  const list = (title, texts) =>
    texts.length ? make("div", {}, make("h2", {}, title), make("ul", {}, ...texts.map((text) => make("li", {}, text)))) : null;

  const judge = (entry, row) => {
    if (!scoring) return;
    const said = Object.values(row.criteria);
    if (said.includes(null)) { row.useful = null; return; }
    row.useful = said.every(Boolean) && (!entry.exactSourceNavigation || row.firstSourceDecisive === true);
  };
  const missing = (entry, row) => {
    const gaps = [];
    if (!scoring) {
      if (row.disposition === null) gaps.push("disposition");
      if (row.disposition === "not-useful" && row.cause === null) gaps.push("cause");
      if (!row.rationale.trim()) gaps.push("rationale");
      return gaps;
    }
    judge(entry, row);
    if (Object.values(row.criteria).includes(null)) gaps.push("all six criteria");
    if (row.clauseCoverage === null || row.clauseCoverage > entry.clauses.length) gaps.push("clauses covered");
    if (row.sourceSupport === null) gaps.push("source support");
    if (row.sourceSupport === "material-failure" && row.criteria.sourcesSupport) gaps.push("criterion 3 (sources fail)");
    if (row.essentialLimits === "material-failure" && row.criteria.limitsStated) gaps.push("criterion 4 (limits fail)");
    if (row.firstSourceRelevant === undefined) gaps.push("first source relevant");
    if (row.firstSourceDecisive === undefined) gaps.push("first source decisive");
    if (row.essentialLimits === null) gaps.push("essential limits");
    if (row.useful === false && !row.defects.length) gaps.push("at least one defect");
    if (!row.reason.trim()) gaps.push("reason");
    return gaps;
  };
  const complete = (entry) =>
    entry.deliveries.every((delivery) => !missing(entry, rows.get(place(entry, delivery))).length);

  const choice = (row, panel, title, name, options, get, set) =>
    make("fieldset", { class: "inline" }, make("legend", {}, title), ...options.map(([value, text]) =>
      make("label", {}, make("input", {
        type: "radio", name: `${panel}/${name}`, value: String(value), checked: get() === value,
        onchange: () => { set(value); changed(); },
      }), ` ${text}`)));

  const criteriaFields = (row, panel) => sheet.criteria.map(({ name, text }, number) =>
    choice(row, panel, `${number + 1}. ${text}`, name, [[true, "yes"], [false, "no"]],
      () => row.criteria[name], (value) => { row.criteria[name] = value; }));

  const scoreFields = (entry, row, panel) => {
    const words = sheet.assessments.map((word) => [word, word.replace("-", " ")]);
    const yesNo = [[true, "yes"], [false, "no"], [null, "no source"]];
    return [
      ...criteriaFields(row, panel),
      make("fieldset", {}, make("label", {}, `Clauses covered, of ${entry.clauses.length} `, make("input", {
        type: "number", min: 0, max: entry.clauses.length, value: row.clauseCoverage ?? "",
        oninput: (event) => {
          const value = event.target.valueAsNumber;
          row.clauseCoverage = Number.isInteger(value) && value >= 0 ? value : null;
          changed();
        },
      }))),
      choice(row, panel, "Source support", "support", words, () => row.sourceSupport, (v) => { row.sourceSupport = v; }),
      choice(row, panel, "First source relevant?", "relevant", yesNo,
        () => row.firstSourceRelevant, (v) => { row.firstSourceRelevant = v; }),
      choice(row, panel, "First source decisive?", "decisive", yesNo,
        () => row.firstSourceDecisive, (v) => { row.firstSourceDecisive = v; }),
      choice(row, panel, "Essential limits", "limits", words, () => row.essentialLimits, (v) => { row.essentialLimits = v; }),
      make("fieldset", { class: "inline" }, make("legend", {}, "Defects"), ...sheet.defects.map((name) =>
        make("label", {}, make("input", {
          type: "checkbox", checked: row.defects.includes(name),
          onchange: (event) => {
            row.defects = event.target.checked ? [...row.defects, name] : row.defects.filter((one) => one !== name);
            changed();
          },
        }), ` ${name.replaceAll("-", " ")}`))),
      text(row, "reason", "Reason"),
    ];
  };
  const text = (row, name, title) => make("label", {}, make("strong", {}, title), make("textarea", {
    "data-field": name, oninput: (event) => { row[name] = event.target.value; changed(); },
  }, row[name]));

  const decisionFields = (row, panel) => [
    choice(row, panel, "The answer is", "disposition", [["useful", "useful"], ["not-useful", "not useful"]],
      () => row.disposition, (v) => { row.disposition = v; }),
    choice(row, panel, "At fault", "cause", [["oracleError", "the oracle"], ["productError", "the product"], [null, "neither"]],
      () => row.cause, (v) => { row.cause = v; }),
    text(row, "rationale", "Rationale"),
  ];

  const said = (judgment, number) => make("details", { open: true }, make("summary", {}, `Judgment ${number + 1}: ${judgment.useful ? "useful" : "not useful"}`),
    make("blockquote", {}, judgment.reason),
    list("Criteria not met", sheet.criteria.filter(({ name }) => !judgment.criteria[name]).map(({ text }) => text)),
    list("Defects", judgment.defects));

  const panel = (entry, delivery) => {
    const row = rows.get(place(entry, delivery));
    const id = place(entry, delivery);
    return make("section", { class: "panel", tabindex: -1, "data-place": id, "aria-label": `Answer ${delivery.label}` },
      make("h2", {}, `Answer ${delivery.label}`),
      make("blockquote", {}, delivery.answer ?? "No answer was delivered."),
      list("Limitations shown", delivery.limitations),
      list("Sources linked", delivery.links.map((link) => `${link.claim} — ${link.url}`)),
      ...(entry.judgments ?? []).map(said),
      ...(scoring ? scoreFields(entry, row, id) : decisionFields(row, id)),
      make("p", { class: "outcome", role: "status" }));
  };

  const oracle = (entry) => make("details", { open: true }, make("summary", {}, "What the sources allow"),
    list("Facts", entry.oracle.facts), list("Limits", entry.oracle.limits), list("Not available", entry.oracle.unavailable),
    entry.oracle.condition ? list("Only under this condition", [entry.oracle.condition]) : null,
    list("Sources (any alias of the same passage counts)", entry.oracle.sources.map((source) =>
      `${[source.url, ...source.aliases].join(" or ")}: ${source.passage}`)));

  const header = make("header", {});
  const screen = make("div", {});
  const draft = make("label", { class: "file" }, "Load draft", make("input", { type: "file", accept: ".json", onchange: load }));

  function show() {
    const entry = sheet.entries[at];
    if (!entry) { screen.replaceChildren(make("p", {}, "Nothing to decide. Save to close this part.")); changed(false); return; }
    screen.replaceChildren(
      make("h1", { tabindex: -1 }, entry.question),
      make("p", { class: "hint" }, `Set ${entry.setId}, question ${entry.questionId}. ${entry.exactSourceNavigation ? "It asks to be led to an exact source." : ""}`),
      list("Clauses", entry.clauses), oracle(entry),
      make("details", {}, make("summary", {}, "Activation that was frozen"), make("blockquote", {}, sheet.activation)),
      make("div", { class: "panels" }, ...entry.deliveries.map((delivery) => panel(entry, delivery))));
    changed(false);
    scrollTo(0, 0);
    screen.querySelector("h1").focus({ preventScroll: true });
  }

  function changed(edited = true) {
    unsaved = unsaved || edited;
    const done = sheet.entries.filter(complete).length;
    const entry = sheet.entries[at];
    for (const delivery of entry ? entry.deliveries : []) {
      const row = rows.get(place(entry, delivery));
      const node = screen.querySelector(`[data-place="${place(entry, delivery)}"]`);
      const gaps = missing(entry, row);
      node.classList.toggle("done", !gaps.length);
      const outcome = node.querySelector(".outcome");
      outcome.classList.toggle("missing", gaps.length > 0);
      outcome.textContent = gaps.length ? `Still open: ${gaps.join(", ")}` :
        scoring ? `By your criteria: ${row.useful ? "useful" : "not useful"}` : "Decided";
    }
    const total = sheet.entries.length;
    header.replaceChildren(
      make("div", { class: "row" },
        make("span", { id: "progress" }, `Question ${Math.min(at + 1, total)} of ${total} · ${done} complete`),
        make("button", { id: "previous", disabled: at === 0, onclick: () => go(-1) }, "Previous"),
        make("button", { id: "next", disabled: at >= total - 1, onclick: () => go(1) }, "Next"),
        make("button", { id: "open", disabled: done === total, onclick: nextOpen }, "Next open"),
        make("button", { id: "draft", onclick: () => save("draft.json") }, "Save draft"), draft,
        make("button", { id: "save", disabled: done < total, onclick: () => save(data.file) }, "Save finished")),
      make("progress", { max: Math.max(total, 1), value: total ? done : 1, "aria-label": "Questions complete" }),
      make("p", { class: "hint" }, make("kbd", {}, "Alt+→"), " next  ", make("kbd", {}, "Alt+←"), " previous  ",
        make("kbd", {}, "Alt+X"), " ", make("kbd", {}, "Alt+Y"), " answer  ", make("kbd", {}, "Alt+S"), " save draft. Nothing leaves this page until you save."));
  }

  function go(step) { at = Math.max(0, Math.min(sheet.entries.length - 1, at + step)); show(); }
  function nextOpen() {
    const order = [...sheet.entries.keys()].map((offset) => (at + 1 + offset) % sheet.entries.length);
    const found = order.find((index) => !complete(sheet.entries[index]));
    if (found !== undefined) { at = found; show(); }
  }

  function filled() {
    const whole = [...rows.values()].map((row) => Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, value === undefined ? null : value])));
    const common = { version: 1, sheetDigest: data.sheetDigest };
    return scoring ? { ...common, scorerCode: sheet.scorerCode, scores: whole }
      : { ...common, adjudicatorCode: sheet.adjudicatorCode, decisions: whole };
  }
  function save(name) {
    const url = URL.createObjectURL(new Blob([JSON.stringify(filled(), null, 1) + "\n"], { type: "application/json" }));
    const link = make("a", { href: url, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
    unsaved = false;
  }
  async function load(event) {
    const document_ = JSON.parse(await event.target.files[0].text());
    if (document_.sheetDigest !== data.sheetDigest) { alert("This draft belongs to another sheet."); return; }
    for (const row of document_.scores ?? document_.decisions) {
      const key = [row.setId, row.questionId, row.label].join("/");
      if (rows.has(key)) rows.set(key, row);
    }
    show();
  }

  addEventListener("keydown", (event) => {
    if (!event.altKey || event.ctrlKey || event.metaKey) return;
    const actions = { ArrowRight: () => go(1), ArrowLeft: () => go(-1), KeyS: () => save("draft.json"), KeyX: () => reach("X"), KeyY: () => reach("Y") };
    const action = actions[event.code];
    if (action) { event.preventDefault(); action(); }
  });
  function reach(label) {
    const node = screen.querySelector(`[data-place$="/${label}"]`);
    if (node) (node.querySelector("input") ?? node).focus();
  }
  addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });
  root.append(header, screen);
  show();
  globalThis.metaEvalForm = { filled };
})();
