"use strict";
// Draws the charts of a page as they come into sight, in light or dark, and sets their signals.

const theme = JSON.parse(document.getElementById("theme").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const drawn = new Map(); // element -> view
const signals = {}; // what the page's controls have set

function unpack(spec) {
  for (const [name, columns] of Object.entries(spec.datasets || {})) {
    const lists = Object.entries(columns).map(([key, list]) => [key, list.codes ? list.codes.map((i) => list.levels[i]) : list]);
    const rows = lists.length ? lists[0][1].map((_, i) => Object.fromEntries(lists.map(([key, list]) => [key, list[i]]))) : [];
    spec.datasets[name] = rows;
  }
  return spec;
}

function colours(value) {
  if (typeof value === "string") return theme.dark[value] || value;
  if (Array.isArray(value)) return value.map(colours);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, key === "datasets" ? inner : colours(inner)]));
  return value;
}

async function draw(host) {
  const spec = (host.spec = host.spec || unpack(JSON.parse(host.querySelector("script").textContent)));
  const shade = dark.matches ? colours : (value) => value;
  const options = { actions: false, ast: true, renderer: "svg", config: shade(theme.config), tooltip: { disableDefaultStyle: true } };
  drawn.get(host)?.finalize();
  const { view } = await vegaEmbed(host, shade(spec), options);
  drawn.set(host, view);
  host.style.minHeight = "";
  Object.entries(signals).forEach(([name, value]) => set(view, name, value));
}

function set(view, name, value) {
  try { view.signal(name, value).runAsync(); } catch { /* this chart has no such signal */ }
}

function signal(name, value) {
  signals[name] = value;
  for (const view of drawn.values()) set(view, name, value);
}

const watcher = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) { watcher.unobserve(target); draw(target); }
}, { rootMargin: "300px" });
for (const host of document.querySelectorAll(".vega")) {
  host.style.minHeight = Number(host.dataset.height) + 60 + "px";
  watcher.observe(host);
}
dark.addEventListener("change", () => drawn.forEach((_, host) => draw(host)));
addEventListener("beforeprint", () => document.querySelectorAll(".vega").forEach((host) => drawn.has(host) || draw(host)));

for (const control of document.querySelectorAll("[data-signal]")) {
  const value = () => (control.type === "checkbox" ? control.checked : control.type === "range" ? Number(control.value) : control.value);
  if (control.tagName !== "BUTTON") control.addEventListener("input", () => {
    signal(control.dataset.signal, value());
    if (control.nextElementSibling?.tagName === "OUTPUT") control.nextElementSibling.textContent = control.value;
  });
  else control.addEventListener("click", () => {
    const group = document.querySelectorAll(`button[data-signal="${control.dataset.signal}"]`);
    const pressed = control.getAttribute("aria-pressed") === "true", toggle = "toggle" in control.dataset;
    if (pressed && !toggle) return;
    for (const one of group) one.setAttribute("aria-pressed", String(one === control && !pressed));
    signal(control.dataset.signal, pressed ? "" : control.value);
  });
}

for (const button of document.querySelectorAll("[data-save]")) button.addEventListener("click", async () => {
  const figure = button.closest("figure"), host = figure.querySelector(".vega"), kind = button.dataset.save;
  if (!drawn.has(host)) await draw(host);
  const name = figure.querySelector("figcaption b").textContent.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const link = document.createElement("a");
  link.download = `${name}.${kind}`;
  link.href = kind === "csv" ? URL.createObjectURL(new Blob([csv(host.spec)], { type: "text/csv" })) : await drawn.get(host).toImageURL(kind, 2);
  link.click();
});

// The largest table of a chart. A cell that a spreadsheet would run as a formula begins with a quote.
function csv(spec) {
  const rows = Object.values(spec.datasets).reduce((a, b) => (b.length > a.length ? b : a), []);
  const cell = (value) => {
    const text = value == null ? "" : typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? "'" + value : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const keys = Object.keys(rows[0] || {});
  return [keys, ...rows.map((row) => keys.map((key) => row[key]))].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

const links = new Map([...document.querySelectorAll("#contents a")].map((a) => [a.hash.slice(1), a]));
const places = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) links.forEach((a, id) => a.classList.toggle("here", id === target.id));
}, { rootMargin: "-10% 0px -80%" });
for (const section of document.querySelectorAll("section[id]")) places.observe(section);
