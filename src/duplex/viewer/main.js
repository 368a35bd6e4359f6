// Ties the page together: which call is shown, where playback is, which key does what.

const run = readBlock("run");
const player = new Player(() => refresh());
const timeline = new Timeline((ms) => player.seek(ms));
const transcript = new Transcript((start, end) => go(start, end, false));
const panels = new Panels((start, end, mark) => go(start, end, mark));
const STATUS = { passed: "✓ passed", failed: "✕ failed", infrastructure_error: "! does not count" };
const LEGEND = [
  ["caller", "caller"], ["assistant", "assistant"], ["both", "both speak"], ["latency", "time to reply, ±"],
  ["work", "delegations, tools"], ["silence", "awkward silence"],
];

let shown = -1;
let call = null;
let stops = [];
let ticking = false;

// -- which call -------------------------------------------------------------------

function show(index) {
  if (index === shown || !run.calls[index]) return;
  shown = index;
  call = readBlock(`call-${index}`);
  byId("sentence").textContent = call.sentence;
  byId("title").textContent = call.title;
  byId("status").textContent = STATUS[call.status] ?? call.status;
  byId("status").className = `pill ${call.status}`;
  showError(call);
  byId("kept").textContent = [call.sound, ...call.kept].join(" · ");
  stops = [...new Set((call.tracks.turns.length ? call.tracks.turns : call.lines.filter((line) => line.kind === "said")).map((turn) => turn.start))].sort((a, b) => a - b);
  byId("lanes").setAttribute("aria-valuemax", String(Math.round(call.duration_ms)));
  byId("stage").hidden = call.duration_ms === 0;
  byId("nothing").hidden = call.duration_ms !== 0;
  hideTip();
  player.load(index, call.mime, call.duration_ms);
  timeline.load(call);
  transcript.load(call.lines);
  panels.load(call);
  choose(index);
  refresh();
}

function showError(of) {
  const box = byId("error");
  box.hidden = !of.error;
  if (!of.error) return;
  box.replaceChildren(make("b", "", `Stage ${of.error.stage}: `), of.error.message, make("p", "muted", of.kept.join(" · ")));
}

function choose(index) {
  const { scenario } = run.calls[index];
  const select = byId("scenario");
  select.value = String(run.calls.findIndex((one) => one.scenario === scenario));
  const same = run.calls.map((one, at) => ({ ...one, at })).filter((one) => one.scenario === scenario);
  const buttons = same.map((one) => {
    const pick = button("", `${STATUS[one.status]?.[0] ?? ""} sample ${one.sample}`, () => show(one.at));
    pick.setAttribute("aria-pressed", String(one.at === index));
    return pick;
  });
  byId("samples").replaceChildren(...(same.length > 1 ? buttons : []));
  byId("previous").disabled = index === 0;
  byId("next").disabled = index === run.calls.length - 1;
  [...byId("calls").rows].forEach((row, at) => row.setAttribute("aria-current", String(at - 1 === index)));
  const hash = `#call=${index + 1}`;
  if (location.hash.split("&")[0] !== hash) history.replaceState(null, "", hash);
}

function listCalls() {
  const select = byId("scenario");
  run.calls.forEach((one, index) => {
    if (run.calls.findIndex((other) => other.scenario === one.scenario) !== index) return;
    const all = run.calls.filter((other) => other.scenario === one.scenario);
    const marks = all.map((other) => STATUS[other.status]?.[0] ?? "").join("");
    const option = make("option", "", `${marks}  ${one.scenario}`);
    option.value = String(index);
    select.append(option);
  });
  const table = byId("calls");
  table.append(headRow(run.columns));
  run.rows.forEach((cells, index) => {
    const row = make("tr", "go", ...cells.map((cell, at) => make("td", at === 1 ? run.calls[index].status : "", cell)));
    table.append(leading(named(row, run.columns), () => show(index)));
  });
  byId("pooled").append(...run.pooled.map((row) => metricRow(row)));
  byId("all-calls").hidden = run.calls.length < 2;
  document.querySelector("nav.pick").hidden = run.calls.length === 1;
  select.addEventListener("change", () => show(Number(select.value)));
}

// -- where playback is --------------------------------------------------------------

function go(start, end, mark) {
  if (mark) timeline.mark(start, end);
  player.seek(start);
  if (start < timeline.from || start > timeline.to) timeline.playhead(start, true);
  if (mark && byId("stage").getBoundingClientRect().bottom < 60) byId("stage").scrollIntoView();
}

function step(direction) {
  const at = player.position;
  const next = direction > 0 ? stops.find((one) => one > at + 1) : stops.findLast((one) => one < at - 300);
  if (next !== undefined) go(next, next, false);
}

function refresh() {
  if (!call) return;
  const { playing, position } = player;
  byId("play").textContent = playing ? "Pause" : "Play";
  byId("play").setAttribute("aria-pressed", String(playing));
  byId("play").disabled = !player.hasSound;
  for (const choice of document.querySelectorAll("[data-solo]")) {
    choice.setAttribute("aria-pressed", String(choice.dataset.solo === player.solo));
    choice.disabled = !player.hasSound;
  }
  place(position, playing);
  if (playing && !ticking) {
    ticking = true;
    requestAnimationFrame(tick);
  }
}

function tick() {
  place(player.position, player.playing);
  ticking = player.playing;
  if (ticking) requestAnimationFrame(tick);
}

function place(position, playing) {
  const words = `${clock(position)} / ${clock(call.duration_ms)}`;
  byId("time").textContent = words;
  byId("lanes").setAttribute("aria-valuenow", String(Math.round(position)));
  byId("lanes").setAttribute("aria-valuetext", words);
  timeline.playhead(position, playing);
  transcript.mark(position, playing);
}

// -- keys and buttons ----------------------------------------------------------------

const KEYS = {
  " ": () => player.toggle(),
  ArrowLeft: (event) => player.seek(player.position - (event.shiftKey ? 5000 : 1000)),
  ArrowRight: (event) => player.seek(player.position + (event.shiftKey ? 5000 : 1000)),
  j: () => step(1),
  k: () => step(-1),
  b: () => player.hear("both"),
  c: () => player.hasSound && player.hear("caller"),
  a: () => player.hasSound && player.hear("assistant"),
  "+": () => timeline.zoom(0.6, player.position),
  "=": () => timeline.zoom(0.6, player.position),
  "-": () => timeline.zoom(1 / 0.6, player.position),
  0: () => timeline.fit(),
  "[": () => show(shown - 1),
  "]": () => show(shown + 1),
  "?": () => byId("help").showModal(),
};

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const on = event.target;
  if (on instanceof HTMLSelectElement) return;
  const busy = on instanceof HTMLElement && on.closest("button, summary, input, a, tr");
  if (event.key === " " && busy) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act(event);
}

document.addEventListener("keydown", pressed);
byId("play").addEventListener("click", () => player.toggle());
byId("previous").addEventListener("click", () => show(shown - 1));
byId("next").addEventListener("click", () => show(shown + 1));
byId("speed").addEventListener("change", (event) => { player.rate = Number(event.target.value); });
byId("zoom-in").addEventListener("click", () => timeline.zoom(0.6, player.position));
byId("zoom-out").addEventListener("click", () => timeline.zoom(1 / 0.6, player.position));
byId("zoom-fit").addEventListener("click", () => timeline.fit());
byId("help-button").addEventListener("click", () => byId("help").showModal());
for (const choice of document.querySelectorAll("[data-solo]")) {
  choice.addEventListener("click", () => player.hear(choice.dataset.solo));
}

// -- begin ------------------------------------------------------------------------

byId("run-id").textContent = run.id;
byId("run-sentence").textContent = run.calls.length > 1 ? run.sentence : "";
byId("size").textContent = run.size;
byId("legend").append(...LEGEND.map(([name, words]) => make("span", "", make("i", `i-${name}`), words)));
listCalls();
const asked = /^#call=(\d{1,6})(?:&t=(\d{1,9}))?$/.exec(location.hash);
if (run.calls.length) {
  const first = asked ? Number(asked[1]) - 1 : run.calls.findIndex((one) => one.status !== "passed");
  show(run.calls[first] ? first : 0);
  if (asked?.[2]) go(Number(asked[2]), Number(asked[2]), false);
} else {
  byId("sentence").textContent = "This run holds no call yet.";
  byId("stage").hidden = true;
}
