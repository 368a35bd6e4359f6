// Renews the parts of a run's page while the run goes on: whenever its events say that
// something happened, the page is fetched again and what differs is put in place. What
// has the focus stays where it is; what is open stays open.
"use strict";

const AT_MOST_EVERY_MS = 1000;
let wanted = false;
let busy = false;

function follow() {
  const head = document.getElementById("head");
  if (!head || head.dataset.status !== "running") return;
  const events = new EventSource(`/api/runs/${encodeURIComponent(head.dataset.run)}/events`);
  for (const kind of ["run", "began", "ended"]) events.addEventListener(kind, renew);
  events.addEventListener("over", () => {
    events.close();
    renew();
  });
}

async function renew() {
  wanted = true;
  if (busy) return;
  busy = true;
  while (wanted) {
    wanted = false;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (answer.ok) put(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // The server is away; the next event or a reload tells the rest.
    }
    await new Promise((done) => setTimeout(done, AT_MOST_EVERY_MS));
  }
  busy = false;
}

function put(fresh) {
  const main = document.getElementById("content");
  const parts = [...fresh.querySelectorAll("[data-part]")];
  const names = new Set(parts.map((part) => part.id));
  for (const old of main.querySelectorAll("[data-part]")) if (!names.has(old.id)) old.remove();
  let before = null;
  for (const part of parts) {
    let here = document.getElementById(part.id);
    if (!here) {
      here = document.importNode(part, true);
      if (before) before.after(here);
      else main.prepend(here);
    } else if (here.outerHTML !== part.outerHTML && !here.contains(document.activeElement)) {
      const open = [...here.querySelectorAll("details")].map((one) => one.open);
      const next = document.importNode(part, true);
      [...next.querySelectorAll("details")].forEach((one, at) => { one.open = Boolean(open[at]); });
      here.replaceWith(next);
      here = next;
    }
    before = here;
  }
}

follow();
