// Helpers every part of the page uses. Data becomes text nodes and attributes
// of a fixed set only; nothing here can make markup from a string.

const byId = (id) => document.getElementById(id);

/** Make an element: `make("p", "muted", "words", child…)`. */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A button that does one thing. */
function button(className, words, act) {
  const element = make("button", className, words);
  element.type = "button";
  element.addEventListener("click", act);
  return element;
}

/** Read a block of JSON of this page. */
const readBlock = (name) => JSON.parse(byId(name).textContent);

/** Bytes of a block of base64. */
function bytesOf(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** A moment of the call: 0:07.30. */
function clock(ms) {
  const hundredths = Math.floor(Math.max(ms, 0) / 10);
  const two = (n) => String(n).padStart(2, "0");
  return `${Math.floor(hundredths / 6000)}:${two(Math.floor(hundredths / 100) % 60)}.${two(hundredths % 100)}`;
}

// -- the one tooltip ------------------------------------------------------------

const tip = byId("tip");

function showTip(words, x, y) {
  if (!words) return hideTip();
  tip.textContent = words;
  tip.hidden = false;
  const left = clamp(x + 14, 6, innerWidth - tip.offsetWidth - 6);
  const above = y + 18 + tip.offsetHeight > innerHeight;
  tip.style.transform = `translate(${left}px, ${above ? y - tip.offsetHeight - 10 : y + 18}px)`;
}

function hideTip() {
  tip.hidden = true;
}

/** Explain an element on hover and on focus. */
function explain(element, words) {
  if (!words) return;
  element.addEventListener("pointerenter", (e) => showTip(words, e.clientX, e.clientY));
  element.addEventListener("pointerleave", hideTip);
}
