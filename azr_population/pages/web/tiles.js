"use strict";
// The figures that head the page: what changed beyond noise, with the line that it came from.

function tileRow(host, data) {
  for (const one of data.tiles) {
    const frame = make("div", { class: "frame" });
    const sure = one.low !== null && (one.low > 0 || one.high < 0);
    const before = !one.grows && (sure || one.low === null) ? format(one.first, one.format) + " → " : "";
    host.append(make("div", { class: "tile" },
      make("span", { class: "label" }, one.title, make("small", {}, one.line === "all" ? "" : one.line)),
      make("span", { class: "value" }, make("small", {}, before), one.grows ? Math.round(one.last).toLocaleString("en") : format(one.last, one.format)),
      make("span", { class: "change" }, changeWords(one, data)), frame));
    onWidth(frame, (width) => spark(frame, one, width));
  }
  balance(host, 150);
}

// A count that can only grow has no change to tell of.
function changeWords(one, data) {
  if (one.grows) return data.coverage.cells.length ? `of ${data.coverage.cells.length.toLocaleString("en")}, so far` : "so far";
  const scale = one.format === "percent" ? 100 : 1, unit = one.format === "percent" ? " points" : "";
  const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(scale * value).toFixed(1);
  if (one.low === null) return signed(one.last - one.first) + unit + ", interval unknown";
  const span = `${signed(one.low)} to ${signed(one.high)}${unit}`;
  return one.low <= 0 && one.high >= 0 ? `within noise: ${span}` : `${one.last > one.first ? "▲" : "▼"} by ${span}`;
}

function spark(frame, one, width) {
  const height = 34, ys = one.points.map((p) => p[1]);
  let low = Math.min(...ys), high = Math.max(...ys);
  if (one.format === "percent") [low, high] = widened(low, high);
  const last = one.points[one.points.length - 1][0] || 1;
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
