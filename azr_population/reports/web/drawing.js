"use strict";
// Everything is made of nodes and text: no string from a run is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function make(name, attributes, text) {
  const node = document.createElement(name);
  for (const key in attributes || {}) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  return node;
}

function draw(parent, name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const key in attributes || {}) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}

// A colour by the name of its CSS variable; an unknown role is drawn in the text's colour.
const COLOURS = ["teacher", "student", "agent", "line-0", "line-1", "line-2", "line-3", "line-4", "line-5"];
function colour(name) {
  return "var(--" + (COLOURS.includes(name) ? name : "ink") + ")";
}

function format(value, kind) {
  if (kind === "percent") return (100 * value).toFixed(Math.abs(value) < 0.1 ? 1 : 0) + "%";
  const size = Math.abs(value);
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

const tip = document.getElementById("tip");

function showTip(event, text) {
  tip.textContent = text;
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

// Calls paint(width) now and whenever the host's width changes, so that text keeps its size.
function onWidth(host, paint) {
  let last = 0;
  new ResizeObserver(() => {
    const width = Math.floor(host.clientWidth);
    if (width && width !== last) paint((last = width));
  }).observe(host);
}
