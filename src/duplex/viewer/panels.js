// Checks, ledger, metrics and turns: everything that stands beside the transcript.
// Values arrive as words; they are put down as they are.

const ICONS = {
  passed: "✓", failed: "✕", not_applicable: "–", not_assessed: "?",
  completed: "✓", skipped: "–", bypassed: "–", pending: "?",
};

class Panels {
  constructor(go) {
    this.go = go;
    this.place = byId("panels");
  }

  load(call) {
    const panels = [this.checks(call)];
    if (call.agenda.length) panels.push(this.agenda(call));
    if (call.steps.length) panels.push(this.steps(call.steps));
    if (call.limits.length) panels.push(this.limits(call.limits));
    panels.push(this.ledger(call));
    const [basis, timing, ...others] = call.panels;
    panels.push(this.rows(basis, false), this.rows(timing, true));
    if (call.turns.length) panels.push(this.turns(call.turns));
    panels.push(...others.filter((panel) => panel.rows.length).map((panel) => this.rows(panel, false)));
    this.place.replaceChildren(...panels);
  }

  panel(title, note, open, ...content) {
    const box = make("details", "panel", make("summary", "", title, make("small", "", note)));
    box.open = open;
    box.append(make("div", "", ...content));
    return box;
  }

  checks(call) {
    return this.panel("Checks", "the required ones decide", true, ...call.checks.map((check) => this.check(check)));
  }

  /** The limits of the policy; green only where one was measured and met. */
  limits(limits) {
    const names = ["limit", "wanted", "measured", "n", "±", ""];
    const table = make("table", "");
    table.append(headRow(names));
    for (const { cells, met } of limits) {
      const mark = met === null ? "muted" : met ? "passed" : "failed";
      const row = make("tr", "", ...cells.map((cell, at) => make("td", at === 5 ? mark : "", cell)));
      table.append(named(row, names));
    }
    return this.panel("Limits", "of the timing policy", true, make("div", "scroll", table));
  }

  agenda(call) {
    const open = call.agenda.some((item) => item.status !== "completed");
    return this.panel("Agenda", call.agenda_note, open, ...call.agenda.map((item) => this.check(item)));
  }

  steps(steps) {
    return this.panel("Procedure", "for diagnosis", false, ...steps.map((step) => this.check(step)));
  }

  check(check) {
    const icon = make("span", `icon ${check.status}`, ICONS[check.status] ?? "·");
    const head = make("div", "head", make("b", "", check.name), make("span", "muted", check.status.replaceAll("_", " ")));
    for (const place of check.places) {
      head.append(button("jump", `▸ ${place.name}`, () => this.go(place.start, place.end, true)));
    }
    if (check.more) head.append(make("span", "muted", `and ${check.more} more`));
    const body = make("div", "", head);
    const reason = check.reason || check.evidence;
    if (check.evidence) {
      const summary = make("summary", "", check.reason || "evidence");
      body.append(make("details", "", summary, make("pre", "", check.evidence)));
    } else if (reason) body.append(make("p", "", check.reason));
    return make("div", `check ${check.required ? "" : "optional"}`, icon, body);
  }

  ledger(call) {
    const tiles = call.ledger.map((fate) => {
      const count = make("b", fate.known ? "" : "unknown", fate.count);
      return make("div", "", count, fate.name);
    });
    const note = make("p", "", call.ledger_note);
    return this.panel("Ledger", "what became of the caller's turns", true, make("div", "ledger", ...tiles), note);
  }

  rows(panel, open) {
    return this.panel(panel.title, panel.note, open, ...panel.rows.map((row) => metricRow(row)));
  }

  turns(turns) {
    const names = ["", "from – to", "latency", "overlap", "what became of it"];
    const table = make("table", "");
    table.append(headRow(names));
    for (const turn of turns) {
      const side = make("td", `${turn.side} tight`, make("span", "who", turn.side));
      const cells = turn.cells.map((cell, index) => make("td", index ? "" : "tight", cell));
      const row = named(make("tr", "go", side, ...cells), names);
      table.append(leading(row, () => this.go(turn.start, turn.end, true)));
    }
    return this.panel("Turns", "click one to hear it", true, make("div", "scroll", table));
  }
}

/** One metric: a line that opens to its meaning, its intervals and its exact value. */
function metricRow(row) {
  const name = make("span", "name", row.name);
  const value = make("span", row.known ? "value" : "value unknown", row.value);
  const more = [...row.details];
  if (row.exact && row.known && !row.exact.startsWith("{")) more.push(`exactly ${row.exact}`);
  if (!row.meaning && !more.length) return make("div", "row flat", name, value);
  const box = make("details", "row", make("summary", "", name, value));
  const from = row.source && row.source !== "duplex" ? ` (${row.source})` : "";
  const words = row.meaning ? [`${row.meaning}${from}`, ...more] : more;
  box.append(make("div", "more", ...words.map((one) => make("p", "", one))));
  explain(box.firstChild, row.meaning ? `${row.meaning}${from}` : more.join("\n"));
  return box;
}

function headRow(names) {
  return make("tr", "", ...names.map((name) => make("th", "", name)));
}

/** A row whose cells know their headings: where there is no room for columns they stand below each other. */
function named(row, names) {
  [...row.cells].forEach((cell, at) => { cell.dataset.heading = at ? names[at] : ""; });
  return row;
}

/** A table row that acts when it is clicked or Enter is pressed on it. */
function leading(row, act) {
  row.tabIndex = 0;
  row.addEventListener("click", act);
  row.addEventListener("keydown", (event) => {
    if (event.key === "Enter") act();
  });
  return row;
}
