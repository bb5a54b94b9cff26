"use strict";
// Everything is made of nodes and text: no string from a run is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function make(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const key in attributes || {}) node.setAttribute(key, attributes[key]);
  node.append(...children);
  return node;
}

function draw(parent, name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const key in attributes || {}) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}

// A drawing that fills its frame; `label` is what it says to who cannot see it.
function canvas(height, label, role) {
  return draw(null, "svg", { height, role: role || "img", "aria-label": label });
}

// A card with a title and a note; the drawing goes into `.frame`, `rows` gives its numbers.
function card(host, title, note, rows) {
  const figure = make("figure");
  const caption = make("figcaption", {}, make("b", {}, title));
  if (note) caption.append(make("span", { class: "note" }, note));
  const frame = make("div", { class: "frame" });
  figure.append(caption, frame);
  saveButtons(figure, title, rows);
  host.append(figure);
  return { figure, caption, frame };
}

// A colour by the name of its CSS variable; an unknown name is drawn in the text's colour. Roles and
// task types have hues of their own. Operators (`op-`) have muted ones, parts of a whole (`part-`)
// are grey, and `line-` are the arms of a comparison, which has no roles.
const COLOURS = ["teacher", "student", "agent", "type-0", "type-1", "type-2", "ink"];
for (let i = 0; i < 8; i++) COLOURS.push("line-" + i, "op-" + i, "part-" + i);
function colour(name) {
  return "var(--" + (COLOURS.includes(name) ? name : "soft") + ")";
}

const dark = matchMedia("(prefers-color-scheme: dark)");

// A shade of a role for its i-th of n members, from the darkest to the lightest.
function memberShade(role, i, n) {
  const read = (name) => {
    const hex = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  };
  const place = n > 1 ? (2 * i) / (n - 1) - 1 : 0, share = Math.abs(place) * 0.62;
  const base = read(COLOURS.includes(role) ? role : "soft"), other = read(place < 0 ? "ink" : "card");
  return `rgb(${base.map((c, k) => Math.round(c + (other[k] - c) * share)).join(", ")})`;
}

// A colour by name, or as it is.
function tint(name) {
  return name.startsWith("rgb") ? name : colour(name);
}

function swatch(name, style) {
  const mark = make("i", { class: "swatch " + (style || "") });
  mark.style.background = tint(name);
  return mark;
}

// Entries are [colour, words, dash]; a dash makes the key a piece of the line.
function legend(host, entries, style) {
  const row = make("div", { class: "legend" });
  for (const [name, words, dash] of entries) {
    let mark = swatch(name, style);
    if (dash) {
      mark = canvas(8, "");
      mark.setAttribute("class", "dash");
      mark.setAttribute("aria-hidden", "true");
      draw(mark, "line", { x1: 0, x2: 26, y1: 4, y2: 4, "stroke-dasharray": dash }).style.stroke = colour(name);
    }
    row.append(make("span", {}, mark, words));
  }
  host.append(row);
}

// Buttons of which one is pressed; `choose` is called with its value.
function choice(host, label, options, choose) {
  const group = make("div", { class: "choice", role: "group", "aria-label": label });
  for (const [value, words] of options) {
    const button = make("button", { type: "button", "aria-pressed": String(value === options[0][0]) }, words);
    button.addEventListener("click", () => {
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
      choose(value);
    });
    group.append(button);
  }
  host.append(group);
}

function format(value, kind) {
  if (kind === "percent") return (100 * value).toFixed(Math.abs(value) < 0.1 ? 1 : 0) + "%";
  const size = Math.abs(value);
  if (size >= 10000) return Math.round(value).toLocaleString("en");
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

// Round numbers that span [low, high] in about `count` steps.
function ticks(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let i = Math.floor(low / step); i <= Math.ceil(high / step); i++) found.push(i * step);
  return found;
}

function stepTicks(last, count) {
  const whole = ticks(0, last, count).filter((t) => t <= last && Number.isInteger(t));
  return whole.length > 1 ? whole : [0, last];
}

function stepAxis(svg, last, x, y, width) {
  const marks = stepTicks(last, width > 500 ? 8 : 4);
  for (const step of marks)
    draw(svg, "text", { x: x(step), y, "text-anchor": step === last ? "end" : "middle" },
      step === marks[marks.length - 1] ? "step " + step : step);
}

const tip = document.getElementById("tip");

// `content` is text, or { head, rows: [[colour or "", name, value]], foot }.
function showTip(event, content) {
  if (typeof content === "string") tip.textContent = content;
  else {
    const rows = content.rows.map(([shade, name, value]) =>
      make("tr", {}, make("th", {}, ...(shade ? [swatch(shade, "round")] : []), name), make("td", {}, value)));
    tip.replaceChildren(make("b", {}, content.head), make("table", {}, make("tbody", {}, ...rows)), content.foot || "");
  }
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = event.clientX + 14 + box.width > innerWidth ? event.clientX - 14 - box.width : event.clientX + 14;
  const top = event.clientY + 14 + box.height > innerHeight ? event.clientY - 14 - box.height : event.clientY + 14;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = Math.max(4, top) + "px";
}

function hideTip() {
  tip.hidden = true;
}

// Tells about a node when it is pointed at, touched or focused.
function describe(node, content) {
  node.addEventListener("pointermove", (event) => showTip(event, content));
  node.addEventListener("pointerdown", (event) => showTip(event, content));
  node.addEventListener("pointerleave", hideTip);
  node.addEventListener("focus", () => showTip(middle(node), content));
  node.addEventListener("blur", hideTip);
}

function middle(node) {
  const box = node.getBoundingClientRect();
  return { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
}

// Calls paint(width) now and whenever the host's width changes, so that text keeps its size.
function onWidth(host, paint) {
  let last = 0;
  new ResizeObserver(() => {
    const width = Math.floor(host.clientWidth);
    if (width && width !== last) paint((last = width));
  }).observe(host);
}
