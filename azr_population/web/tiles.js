"use strict";
// The figures that head the page: what changed, with the line that it came from.

function tileRow(host, tiles) {
  for (const one of tiles) {
    const change = one.last - one.first;
    const words = one.format === "percent" ? (100 * Math.abs(change)).toFixed(1) + " points" : format(Math.abs(change), one.format);
    const arrow = Math.abs(change) < 1e-9 ? "=" : change > 0 ? "▲" : "▼";
    const frame = make("div", { class: "frame" });
    host.append(make("div", { class: "tile" },
      make("span", { class: "label" }, one.title, make("small", {}, one.line === "all" ? "" : one.line)),
      make("span", { class: "value" }, make("small", {}, format(one.first, one.format) + " → "), format(one.last, one.format)),
      make("span", { class: "change" }, arrow + " " + words), frame));
    onWidth(frame, (width) => spark(frame, one, width));
  }
}

function spark(frame, one, width) {
  const height = 34, ys = one.points.map((p) => p[1]);
  const low = Math.min(...ys), high = Math.max(...ys), last = one.points[one.points.length - 1][0] || 1;
  const x = (step) => 3 + ((width - 6) * step) / last;
  const y = (value) => 3 + ((height - 6) * (high - value)) / (high - low || 1);
  const path = (points) => points.map((p, i) => (i ? "L" : "M") + x(p[0]).toFixed(1) + " " + y(p[1]).toFixed(1)).join("");
  const svg = canvas(height, "");
  svg.setAttribute("aria-hidden", "true");
  const long = one.smooth && one.points.length > 2 * SMOOTH;
  for (const [points, style] of [[one.points, long ? "line" : "line main"], ...(long ? [[smooth(one.points), "line main"]] : [])])
    draw(svg, "path", { class: style, d: path(points) }).style.stroke = colour(one.colour);
  frame.replaceChildren(svg);
}
