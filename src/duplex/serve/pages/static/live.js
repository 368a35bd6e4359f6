// A call in progress: follows its events and draws who speaks. Every number and every
// word comes from the server; what was said becomes text nodes and nothing else.
"use strict";

const byId = (id) => document.getElementById(id);
const live = byId("live");
const SIDES = ["caller", "assistant"];
const STRIP_MS = 15000;
const BEHIND_MS = 1200;
const QUIET_DB = -60;
const LATEST_MS = 3000;

const heard = { step: 20, first: 0, db: { caller: [], assistant: [] }, voiced: { caller: "", assistant: "" } };
let shown = null;
let last = null;
let over = false;

function make(name, kind, ...children) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  element.append(...children);
  return element;
}

const clock = (ms) => `${Math.floor(ms / 60000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, "0")}`;

// -- what the server tells --------------------------------------------------------------

function follow() {
  const events = new EventSource(live.dataset.events);
  const on = (kind, act) => events.addEventListener(kind, (event) => act(JSON.parse(event.data)));
  on("call", (call) => {
    heard.step = call.step_ms;
    byId("lines").replaceChildren();
    byId("replies").replaceChildren();
  });
  on("levels", levels);
  on("lines", lines);
  on("replies", replies);
  on("floor", floor);
  on("over", () => {
    events.close();
    ended();
  });
  events.addEventListener("error", () => {
    // A call that is over by now is refused; the page then is the recording's.
    if (events.readyState === EventSource.CLOSED && !over) ended();
  });
}

function levels(found) {
  const count = heard.db.caller.length;
  if (found.from_ms !== heard.first + count * heard.step) {
    heard.first = found.from_ms;
    for (const side of SIDES) { heard.db[side] = []; heard.voiced[side] = ""; }
    shown = null;
  }
  for (const side of SIDES) {
    for (const value of found[side].db) heard.db[side].push(value);
    heard.voiced[side] += found[side].voiced;
  }
}

function replaceFrom(list, sent, item) {
  while (list.children.length > sent.from) list.lastChild.remove();
  for (const entry of sent.entries) list.append(item(entry));
}

function lines(sent) {
  const list = byId("lines");
  replaceFrom(list, sent, line);
  if (byId("follow").checked) list.scrollTop = list.scrollHeight;
}

function line(entry) {
  const said = entry.kind === "said";
  const item = make("li", said ? entry.side : `${entry.kind} small`);
  item.append(make("time", "", entry.at));
  if (said) item.append(make("b", "", entry.side === "caller" ? "Caller" : "Assistant"));
  if (entry.kind === "tool") item.append(make("b", "", "Tool"));
  item.append(make("bdi", "", entry.text || "no words"));
  const more = [entry.latency, ...entry.tags].filter(Boolean).join(", ");
  if (more) item.append(make("span", "small", ` · ${more}`));
  return item;
}

function replies(sent) {
  replaceFrom(byId("replies"), sent, (entry) => {
    const bar = make("span", "bar");
    bar.style.width = `${Math.min(100, (100 * Math.max(0, entry.latency_ms)) / LATEST_MS)}%`;
    const words = entry.open ? `${entry.words}, goes on` : entry.words;
    return make("li", `${entry.late ? "late" : ""} ${entry.open ? "open" : ""}`, make("time", "", entry.at), bar, make("span", "", words));
  });
  const count = byId("replies").children.length;
  if (count) byId("median").textContent = sent.median ? `${sent.median} median so far` : `${count} so far`;
}

function floor(found) {
  const total = found.caller_ms + found.assistant_ms + found.overlap_ms + found.silence_ms;
  if (!total) return;
  const part = { caller: found.caller_ms, assistant: found.assistant_ms, both: found.overlap_ms };
  const names = { caller: "caller", assistant: "assistant", both: "both at once" };
  for (const [name, ms] of Object.entries(part)) {
    byId(`floor-${name}`).style.width = `${(100 * ms) / total}%`;
    byId(`share-${name}`).textContent = `${names[name]} ${(ms / 1000).toFixed(1)} s`;
  }
  byId("share-silence").textContent = `silence ${(found.silence_ms / 1000).toFixed(1)} s`;
}

function ended() {
  over = true;
  const link = make("a", "", "Open the recording");
  link.href = location.pathname;
  const box = byId("over");
  box.replaceChildren("The call is over. ", link);
  box.hidden = false;
  listening(false);
}

// -- who speaks now -----------------------------------------------------------------------

const newest = () => heard.first + heard.db.caller.length * heard.step;

/** Goes through the levels as time passes, a little behind what came last. */
function tick(now) {
  const end = newest();
  if (heard.db.caller.length) {
    const behind = over ? 0 : BEHIND_MS;
    if (shown === null || end - shown > 3 * BEHIND_MS) shown = Math.max(heard.first, end - behind);
    else shown = Math.min(end - heard.step, shown + (now - last));
    draw(shown);
  }
  last = now;
  requestAnimationFrame(tick);
}

function at(side, ms) {
  const index = Math.floor((ms - heard.first) / heard.step);
  return { db: heard.db[side][index] ?? QUIET_DB, voiced: heard.voiced[side][index] === "1" };
}

function draw(ms) {
  byId("clock").textContent = clock(ms);
  const done = over && ms >= newest() - heard.step;
  const speaks = done ? [] : SIDES.filter((side) => recent(side, ms));
  const who = byId("who");
  const name = speaks.length === 2 ? "both" : speaks[0] ?? "";
  const words = { both: "both speak", caller: "the caller speaks", assistant: "the assistant speaks", "": done ? "over" : "silence" }[name];
  if (who.textContent !== words) {
    who.textContent = words;
    who.className = name;
  }
  for (const side of SIDES) {
    const db = done ? QUIET_DB : at(side, ms).db;
    byId(`${side}-level`).style.width = `${Math.max(0, Math.min(100, (100 * (db - QUIET_DB)) / -QUIET_DB))}%`;
    byId(`${side}-says`).textContent = speaks.includes(side) ? "speaks" : "";
  }
  strip(ms);
}

/** Voiced now or a moment ago: words have gaps in which nobody else speaks. */
function recent(side, ms) {
  for (let back = 0; back <= 200; back += heard.step) if (at(side, ms - back).voiced) return true;
  return false;
}

function strip(ms) {
  const canvas = byId("strip");
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  const colours = getComputedStyle(document.documentElement);
  const colour = (name) => colours.getPropertyValue(`--${name}`);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.fillStyle = colour("line");
  context.fillRect(0, height / 2 - 0.5, width, 1);
  const middle = height / 2;
  const wide = (width * heard.step) / STRIP_MS;
  for (let back = 0; back < STRIP_MS; back += heard.step) {
    const moment = ms - back;
    if (moment < heard.first) break;
    const x = width - (back / STRIP_MS) * width - wide;
    const states = SIDES.map((side) => at(side, moment));
    const both = states[0].voiced && states[1].voiced;
    states.forEach(({ db, voiced }, row) => {
      const tall = Math.max(1, ((db - QUIET_DB) / -QUIET_DB) * (middle - 4));
      if (db <= QUIET_DB) return;
      context.globalAlpha = voiced ? 1 : 0.3;
      context.fillStyle = colour(both ? "both" : SIDES[row]);
      context.fillRect(x, row ? middle + 2 : middle - 2 - tall, wide + 0.5, tall);
    });
  }
  context.globalAlpha = 1;
}

// -- listening ----------------------------------------------------------------------------

function listening(on) {
  const sound = byId("sound");
  const button = byId("listen");
  if (on) {
    sound.src = `${live.dataset.sound}?hear=${byId("hear").value}`;
    sound.play().catch(() => listening(false));
  } else {
    sound.pause();
    // Whoever does not listen takes nothing from the server.
    sound.removeAttribute("src");
    sound.load();
  }
  button.setAttribute("aria-pressed", String(on));
  button.textContent = on ? "Stop listening" : "Listen";
  button.disabled = over;
}

byId("none").remove();
byId("listen").addEventListener("click", () => listening(byId("listen").getAttribute("aria-pressed") !== "true"));
byId("hear").addEventListener("change", () => {
  if (byId("listen").getAttribute("aria-pressed") === "true") listening(true);
});
follow();
requestAnimationFrame(tick);
