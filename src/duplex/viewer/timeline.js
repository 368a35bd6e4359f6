// The drawing: two waveforms on one time axis with everything that was found in
// them. It turns milliseconds into pixels; every number it shows came as words.

const RULER = 20;
const BAND = 46;
const WORK_ROW = 15;
const STEPS = [50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000, 900000, 1800000];
const SHORTEST_VIEW = 400;
const PALETTE = ["bg", "ink", "muted", "line", "caller", "assistant", "both", "good", "bad", "warn", "focus", "sunken", "play"];

class Timeline {
  constructor(seek) {
    this.seek = seek;
    this.box = byId("lanes");
    this.canvas = byId("canvas");
    this.mini = byId("mini");
    this.call = null;
    this.marked = null;
    this.hits = [];
    this.from = 0;
    this.to = 1;
    handle(this);
    new ResizeObserver(() => this.draw()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  load(call) {
    this.call = call;
    this.duration = Math.max(call.duration_ms, 1);
    this.peaks = call.peaks && {
      perMs: call.peaks.per_second / 1000,
      caller: bytesOf(call.peaks.caller),
      assistant: bytesOf(call.peaks.assistant),
    };
    this.rows = this.workRows(call.tracks.work);
    this.marked = null;
    this.from = 0;
    this.to = this.duration;
    this.draw();
  }

  // -- what is in view ----------------------------------------------------------

  view(from, to) {
    const length = clamp(to - from, Math.min(SHORTEST_VIEW, this.duration), this.duration);
    this.from = clamp(from, 0, this.duration - length);
    this.to = this.from + length;
    this.draw();
  }

  zoom(factor, around) {
    const at = around ?? (this.from + this.to) / 2;
    this.view(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  fit() {
    this.view(0, this.duration);
  }

  /** Mark a span and make sure that it can be seen. */
  mark(start, end) {
    this.marked = { start, end };
    const length = this.to - this.from;
    const wide = Math.max(length, (end - start) * 1.4);
    if (start < this.from || end > this.to) this.view((start + end - wide) / 2, (start + end + wide) / 2);
    else this.draw();
  }

  x(ms) {
    return ((ms - this.from) / (this.to - this.from)) * this.width;
  }

  at(x) {
    return this.from + (x / this.width) * (this.to - this.from);
  }

  /** Move the playhead; while playing, turn the page when it leaves the view. */
  playhead(ms, playing) {
    if (!this.call) return;
    if (playing && this.to - this.from < this.duration && (ms > this.to || ms < this.from)) {
      const length = this.to - this.from;
      this.view(ms - length * 0.08, ms + length * 0.92);
    }
    const x = this.x(ms);
    byId("playhead").hidden = x < -2 || x > this.width + 2;
    byId("playhead").style.transform = `translateX(${x}px)`;
    byId("mini-playhead").style.transform = `translateX(${(ms / this.duration) * this.width}px)`;
  }

  // -- drawing --------------------------------------------------------------------

  draw() {
    this.width = this.box.clientWidth;
    if (!this.call || !this.width) return;
    const style = getComputedStyle(document.documentElement);
    this.colour = Object.fromEntries(PALETTE.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    const lane = this.width < 520 ? 54 : 78;
    const top = RULER;
    const band = top + lane;
    const bottom = band + BAND;
    const work = bottom + lane;
    const height = work + (this.rows.length ? this.rows.length * WORK_ROW + 8 : 4);
    this.pen = this.prepare(this.canvas, height);
    this.hits = [];
    this.places = { caller: { top, height: lane }, assistant: { top: bottom, height: lane } };
    this.ruler(height);
    this.bands(top, work);
    for (const side of ["caller", "assistant"]) this.lane(side);
    this.floor(band);
    this.brackets(band);
    this.marks();
    this.work(work + 4);
    this.names(top, bottom);
    this.overview();
  }

  prepare(canvas, height) {
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    return pen;
  }

  /** Fill what of a span is in view; at least a pixel, so that nothing vanishes. */
  fill(start, end, y, height, colour, alpha = 1) {
    const left = this.x(start);
    const width = Math.max(this.x(end) - left, 1);
    if (left > this.width || left + width < 0) return null;
    this.pen.globalAlpha = alpha;
    this.pen.fillStyle = colour;
    this.pen.fillRect(left, y, width, height);
    this.pen.globalAlpha = 1;
    return { left, width };
  }

  hit(start, end, y, height, words) {
    this.hits.push({ left: this.x(start) - 3, right: this.x(end) + 3, top: y, bottom: y + height, words });
  }

  ruler(height) {
    const { pen, colour } = this;
    const pixel = (this.to - this.from) / this.width;
    const step = STEPS.find((one) => one / pixel >= 72) ?? Math.ceil((pixel * 72) / 3600000) * 3600000;
    pen.fillStyle = colour.muted;
    pen.strokeStyle = colour.line;
    pen.textAlign = "left";
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = Math.round(this.x(at)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, 4);
      pen.lineTo(x, height);
      pen.stroke();
      const words = step < 1000 ? clock(at) : clock(at).slice(0, -3);
      if (x + 4 + pen.measureText(words).width < this.width) pen.fillText(words, x + 4, RULER / 2);
    }
  }

  /** Bands through both lanes: overlaps, awkward silences, what was jumped to. */
  bands(top, bottom) {
    const { colour } = this;
    for (const mark of this.call.tracks.marks.filter((one) => one.kind === "silence")) {
      this.fill(mark.start, mark.end, top, bottom - top, colour.warn, 0.16);
      this.hit(mark.start, mark.end, top, bottom - top, mark.tip);
    }
    for (const both of this.call.tracks.overlaps) {
      this.hatch(both, top, bottom - top);
      this.hit(both.start, both.end, top, bottom - top, `both speak, ${clock(both.start)} to ${clock(both.end)}`);
    }
    if (this.marked) {
      const box = this.fill(this.marked.start, this.marked.end, top, bottom - top, colour.focus, 0.14);
      if (box) {
        this.pen.strokeStyle = colour.focus;
        this.pen.strokeRect(box.left + 0.5, top + 0.5, box.width - 1, bottom - top - 1);
      }
    }
  }

  hatch(span, y, height) {
    const box = this.fill(span.start, span.end, y, height, this.colour.both, 0.1);
    if (!box) return;
    const { pen } = this;
    pen.save();
    pen.beginPath();
    pen.rect(box.left, y, box.width, height);
    pen.clip();
    pen.globalAlpha = 0.3;
    pen.strokeStyle = this.colour.both;
    pen.beginPath();
    const end = Math.min(box.left + box.width, this.width);
    for (let x = Math.max(box.left, 0) - height; x < end; x += 7) {
      pen.moveTo(x, y + height);
      pen.lineTo(x + height, y);
    }
    pen.stroke();
    pen.restore();
  }

  lane(side) {
    const { top, height } = this.places[side];
    const colour = this.colour[side];
    for (const segment of this.call.tracks.segments.filter((one) => one.side === side)) {
      this.fill(segment.start, segment.end, top + 9, height - 12, colour, 0.13);
      this.hit(segment.start, segment.end, top + 9, height - 12,
        `${side} voice, ${clock(segment.start)} to ${clock(segment.end)}\n${this.call.tracks.found_by}`);
    }
    if (this.peaks) this.wave(this.pen, this.peaks[side], top + 10, height - 14, colour, this.from, this.to);
    for (const turn of this.call.tracks.turns.filter((one) => one.side === side)) {
      this.fill(turn.start, turn.end, top + 3, 4, colour);
      this.hit(turn.start, turn.end, top, 9, turn.tip);
      if (["unanswered", "late", "interruption"].includes(turn.outcome)) {
        this.fill(turn.start, turn.end, top + 3, 4, this.colour.bad);
      }
    }
  }

  wave(pen, peaks, top, height, colour, from, to) {
    const middle = top + height / 2;
    const { perMs } = this.peaks;
    pen.fillStyle = colour;
    for (let x = 0; x < this.width; x += 1) {
      const first = Math.floor((from + (x / this.width) * (to - from)) * perMs);
      const last = Math.max(first + 1, Math.ceil((from + ((x + 1) / this.width) * (to - from)) * perMs));
      let peak = 0;
      for (let i = Math.max(first, 0); i < last && i < peaks.length; i += 1) peak = Math.max(peak, peaks[i]);
      const half = Math.max((peak / 255) * (height / 2), 0.5);
      pen.fillRect(x, middle - half, 1, half * 2);
    }
  }

  /** Who has the floor, as one bar between the lanes. */
  floor(band) {
    const y = band + 4;
    this.fill(this.from, this.to, y, 7, this.colour.line);
    for (const part of this.call.tracks.floor) {
      this.fill(part.start, part.end, y, 7, this.colour[part.holder]);
      const words = part.holder === "both" ? "both speak" : `${part.holder} has the floor`;
      this.hit(part.start, part.end, y - 2, 11, `${words}, ${clock(part.start)} to ${clock(part.end)}`);
    }
  }

  /** Intervals with their number: replies, early starts, yields, missed replies. */
  brackets(band) {
    const { pen, colour } = this;
    const inks = { latency: colour.ink, early: colour.both, yield: colour.focus, missed: colour.bad };
    let free = -Infinity;
    for (const bracket of this.call.tracks.brackets) {
      const left = Math.min(this.x(bracket.start), this.x(bracket.end));
      const right = Math.max(this.x(bracket.start), this.x(bracket.end));
      if (right < 0 || left > this.width) continue;
      const y = band + 22;
      const ink = inks[bracket.kind] ?? colour.ink;
      if (bracket.plus_minus !== null) {
        this.fill(bracket.end - bracket.plus_minus, bracket.end + bracket.plus_minus, band + 13, 12, ink, 0.25);
      }
      pen.strokeStyle = ink;
      pen.setLineDash(bracket.kind === "early" || bracket.kind === "missed" ? [3, 2] : []);
      pen.beginPath();
      pen.moveTo(left, y - 7);
      pen.lineTo(left, y);
      pen.lineTo(right, y);
      pen.lineTo(right, y - 7);
      pen.stroke();
      pen.setLineDash([]);
      this.hit(Math.min(bracket.start, bracket.end), Math.max(bracket.start, bracket.end), band + 12, BAND - 12,
        `${bracket.kind}: ${bracket.label}`);
      free = this.bracketLabel(bracket, (left + right) / 2, y + 12, ink, free);
    }
  }

  /** Write a bracket's number where it is free; return where the next one may begin. */
  bracketLabel(bracket, middle, y, ink, free) {
    const { pen } = this;
    const shortened = bracket.label.replace(/, unreliable edge$/, " ?");
    const width = pen.measureText(shortened).width;
    const left = clamp(middle - width / 2, 2, this.width - width - 2);
    if (left < free) return free;
    pen.fillStyle = ink;
    pen.textAlign = "left";
    pen.fillText(shortened, left, y);
    return left + width + 8;
  }

  marks() {
    for (const mark of this.call.tracks.marks.filter((one) => one.kind !== "silence")) {
      const { top, height } = this.places[mark.side];
      const box = this.fill(mark.start, mark.end, top + height - 5, 3, this.colour.good);
      if (box) this.hit(mark.start, mark.end, top + height - 10, 10, mark.tip);
    }
    for (const fault of this.call.tracks.faults) {
      this.fill(fault.at, fault.at, RULER, this.canvas.clientHeight, this.colour.warn);
      this.hit(fault.at, fault.at, RULER, this.canvas.clientHeight, fault.tip);
    }
  }

  /** Bars that would cover one another, or one another's names, go into rows below. */
  workRows(work) {
    const rows = [];
    const letter = (this.duration / 1100) * 7;
    for (const bar of [...work].sort((a, b) => a.start - b.start || b.end - a.end)) {
      let row = rows.find((one) => one.kind === bar.kind && one.free <= bar.start);
      if (!row && rows.length < 6) {
        row = { kind: bar.kind, free: 0, bars: [] };
        rows.push(row);
      }
      row ??= rows.at(-1);
      row.free = bar.end + (bar.name.length + 3) * letter;
      row.bars.push(bar);
    }
    return rows;
  }

  work(top) {
    this.rows.forEach((row, index) => {
      const y = top + index * WORK_ROW;
      row.bars.forEach((bar, at) => {
        const ink = bar.ok ? this.colour.focus : this.colour.bad;
        const box = this.fill(bar.start, bar.end, y + 2, WORK_ROW - 4, ink, bar.kind === "tool" ? 0.75 : 0.35);
        if (!box) return;
        this.hit(bar.start, bar.end, y, WORK_ROW, bar.tip);
        const next = row.bars[at + 1];
        this.barName(bar, box, y + WORK_ROW / 2 + 0.5, next ? this.x(next.start) : this.width);
      });
    });
  }

  /** A bar's name inside it, or behind it as far as there is room. */
  barName(bar, box, y, limit) {
    const { pen, colour } = this;
    const inside = pen.measureText(bar.name).width + 8 < box.width;
    const left = Math.max(box.left + (inside ? 4 : box.width + 4), 4);
    let name = bar.name;
    while (name && left + pen.measureText(name).width > limit - 4) {
      name = name.length > 4 ? `${name.slice(0, -2).trimEnd()}…` : "";
    }
    pen.fillStyle = inside && bar.kind === "tool" ? colour.bg : colour.ink;
    pen.textAlign = "left";
    pen.fillText(name, left, y);
  }

  names(callerTop, assistantTop) {
    const { pen, colour } = this;
    for (const [name, y] of [["caller", callerTop], ["assistant", assistantTop]]) {
      pen.font = "600 11px system-ui, sans-serif";
      const width = pen.measureText(name).width;
      pen.globalAlpha = 0.82;
      pen.fillStyle = colour.sunken;
      pen.fillRect(2, y + 10, width + 8, 15);
      pen.globalAlpha = 1;
      pen.fillStyle = colour[name];
      pen.textAlign = "left";
      pen.fillText(name, 6, y + 18);
      pen.font = "11px system-ui, sans-serif";
    }
  }

  overview() {
    const pen = this.prepare(this.mini, 26);
    if (this.peaks) {
      this.wave(pen, this.peaks.caller, 1, 12, this.colour.caller, 0, this.duration);
      this.wave(pen, this.peaks.assistant, 13, 12, this.colour.assistant, 0, this.duration);
    }
    const left = (this.from / this.duration) * this.width;
    const span = ((this.to - this.from) / this.duration) * this.width;
    byId("window").style.transform = `translateX(${left}px)`;
    byId("window").style.width = `${Math.max(span, 6)}px`;
    byId("window").hidden = span >= this.width - 1;
  }
}
