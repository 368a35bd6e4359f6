// The transcript: lines that lead to their sound, and light up while it plays.

class Transcript {
  constructor(go) {
    this.go = go;
    this.list = byId("lines");
    this.follow = byId("follow");
    this.entries = [];
  }

  load(lines) {
    this.list.replaceChildren();
    this.entries = lines.map((line) => {
      const item = this.item(line);
      this.list.append(item);
      return { line, item };
    });
    if (!lines.length) this.list.append(make("li", "small", make("p", "muted", "No words were recorded.")));
  }

  item(line) {
    const item = make("li", line.kind === "said" ? line.side : `${line.kind} small`);
    const words = make("span", "words");
    if (line.kind === "said") {
      words.append(make("span", "who", line.side === "caller" ? "Caller" : "Assistant"));
    } else if (line.kind === "tool") {
      words.append(make("span", "who", "Tool"));
    }
    words.append(line.text ? make("bdi", "", line.text) : make("span", "empty", "no words"));
    if (line.latency) words.append(make("span", "tag latency", line.latency));
    for (const tag of line.tags) words.append(this.tag(tag));
    const at = make("time", "", line.at);
    const go = button("line", "", () => this.go(line.start, line.end));
    go.append(at, words);
    item.append(go);
    if (line.details.length) item.append(this.details(line.details));
    return item;
  }

  tag(words) {
    const known = ["overlap", "interrupt", "inferred"];
    const tag = make("span", `tag ${known.includes(words) ? words : ""}`, words);
    if (words === "failed" || words === "ended the call") tag.classList.add("bad");
    if (words === "inferred") {
      explain(tag, "Placed from the transcript after the fact; the caller's own labels are not inferred.");
    }
    return tag;
  }

  details(parts) {
    const box = make("details", "", make("summary", "", parts.map((part) => part.name).join(", ")));
    for (const part of parts) box.append(make("pre", "", `${part.name}\n${part.text}`));
    return box;
  }

  /** Light the lines that are spoken now; bring the first into view while playing. */
  mark(position, playing) {
    let first = null;
    for (const { line, item } of this.entries) {
      const now = line.start <= position && position < line.end;
      if (now === (item.getAttribute("aria-current") === "true")) {
        if (now && !first) first = item;
        continue;
      }
      if (now) item.setAttribute("aria-current", "true");
      else item.removeAttribute("aria-current");
      if (now && !first) first = item;
    }
    if (first && first !== this.shown && this.follow.checked && playing) {
      this.list.scrollTop = first.offsetTop - this.list.clientHeight / 3;
    }
    this.shown = first;
  }
}
