// The page of a search under way: asks its server what is new, and takes it up without a flicker.
// What the reader has opened, scrolled and selected stays.
"use strict";

const WAIT_MS = 2000;
const MOST_MS = 20000;
let version = document.documentElement.dataset.version;
let wait = WAIT_MS;

function openParts() {
  return new Set([...document.querySelectorAll("details[open]")].map(nameOf));
}

function nameOf(details) {
  const own = details.closest("[id]");
  const root = own || document.body;
  const title = details.querySelector("summary");
  return (own ? own.id : "") + "|" + [...root.querySelectorAll("details")].indexOf(details) + "|" + (title ? title.textContent.slice(0, 60) : "");
}

function scrolls() {
  return [...document.querySelectorAll("pre, .scroll, .wide")].map((e) => [e.scrollLeft, e.scrollTop]);
}

function put(next) {
  const now = document.querySelector("main");
  const open = openParts();
  const known = new Set([...document.querySelectorAll("details")].map(nameOf));
  const inner = scrolls();
  const [left, top] = [window.scrollX, window.scrollY];
  const parts = next.querySelector("main");
  if (!parts) return;
  document.title = next.title;
  now.replaceWith(document.adoptNode(parts));
  for (const details of document.querySelectorAll("details")) {
    const name = nameOf(details);
    if (known.has(name)) details.open = open.has(name);
  }
  [...document.querySelectorAll("pre, .scroll, .wide")].forEach((e, i) => {
    if (inner[i]) [e.scrollLeft, e.scrollTop] = inner[i];
  });
  window.scrollTo(left, top);
}

async function look() {
  try {
    const status = await (await fetch("status", { cache: "no-store" })).json();
    const isSelecting = String(window.getSelection()) !== "";
    if (status.version !== version && !isSelecting) {
      const next = new DOMParser().parseFromString(await (await fetch(".", { cache: "no-store" })).text(), "text/html");
      put(next);
      version = next.documentElement.dataset.version;
    }
    wait = WAIT_MS;
    document.documentElement.removeAttribute("data-lost");
  } catch {
    wait = Math.min(2 * wait, MOST_MS);  // the server has ended: the page stays as it was
    document.documentElement.setAttribute("data-lost", "");
  }
  setTimeout(look, wait);
}

setTimeout(look, wait);
