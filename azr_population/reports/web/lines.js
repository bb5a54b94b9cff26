"use strict";
// Line charts: thick lines are roles or task types, thin lines are members in their role's colour.

function lineChart(host, chart, data) {
  const figure = make("figure");
  const caption = make("figcaption");
  caption.append(make("b", {}, chart.title), make("span", { class: "note" }, chart.note));
  const legend = make("div", { class: "legend" });
  for (const line of chart.lines.filter((l) => l.main)) {
    const key = make("span");
    const swatch = make("i");
    swatch.style.background = colour(line.colour);
    key.append(swatch, line.name);
    legend.append(key);
  }
  const frame = make("div");
  figure.append(caption, legend, frame);
  host.append(figure);
  onWidth(frame, (width) => paintLines(frame, chart, data, width));
}

function paintLines(frame, chart, data, width) {
  const height = 210, left = 46, right = 8, top = 8, bottom = 24;
  const ys = chart.lines.flatMap((l) => l.points.map((p) => p[1]));
  let low = Math.min(...ys.slice(0, 1)), high = low;
  for (const y of ys) { low = Math.min(low, y); high = Math.max(high, y); }
  const share = chart.format === "percent" && high <= 1;
  if (high - low < 1e-9) { const pad = Math.abs(high) * 0.05 || 0.5; low -= pad; high += pad; }
  let levels = ticks(low, high, 4);
  // A share ends at 100%, whatever room the round numbers would leave.
  if (share) levels = levels.filter((l) => l <= 1 + 1e-9);
  if (levels.length < 2) levels = [low, high];
  low = levels[0]; high = levels[levels.length - 1];
  const x = (step) => left + ((width - left - right) * step) / (data.steps || 1);
  const y = (value) => top + ((height - top - bottom) * (high - value)) / (high - low);

  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("height", height);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", chart.title + ": " + chart.lines.filter((l) => l.main).map((l) =>
    l.name + " from " + format(l.points[0][1], chart.format) + " to " +
    format(l.points[l.points.length - 1][1], chart.format)).join(", "));
  for (const level of levels) {
    draw(svg, "line", { class: "grid", x1: left, x2: width - right, y1: y(level), y2: y(level) });
    draw(svg, "text", { x: left - 6, y: y(level) + 4, "text-anchor": "end" }, tickLabel(level, levels, chart.format));
  }
  for (const step of new Set(data.lineage.map((child) => child.step)))
    draw(svg, "line", { class: "event", x1: x(step), x2: x(step), y1: height - bottom, y2: height - bottom - 6 });
  const marks = stepTicks(data.steps, width > 500 ? 8 : 4);
  for (const step of marks)
    draw(svg, "text", { x: x(step), y: height - 8, "text-anchor": step === data.steps ? "end" : "middle" },
      step === marks[marks.length - 1] ? "step " + step : step);
  for (const line of [...chart.lines].sort((a, b) => a.main - b.main)) {
    const path = line.points.map((p, i) => (i ? "L" : "M") + x(p[0]).toFixed(1) + " " + y(p[1]).toFixed(1)).join("");
    const drawn = draw(svg, "path", { class: line.main ? "line main" : "line", "data-name": line.name, d: path });
    drawn.style.stroke = colour(line.colour);
    if (line.points.length === 1 || (line.main && line.points.length < 8))
      for (const p of line.points) {
        const dot = draw(svg, "circle", { class: "line", cx: x(p[0]), cy: y(p[1]), r: 2.5, "data-name": line.name });
        dot.style.fill = dot.style.stroke = colour(line.colour);
      }
  }
  hover(svg, chart, { x, y, left, right, top, bottom, width, height });
  frame.replaceChildren(svg);
  highlight(svg);
}

function tickLabel(level, levels, kind) {
  const scale = kind === "percent" ? 100 : 1;
  const exact = (d) => levels.every((l) => Math.abs(scale * l * 10 ** d - Math.round(scale * l * 10 ** d)) < 1e-6);
  return (scale * level).toFixed([0, 1, 2, 3].find(exact) ?? 4) + (scale > 1 ? "%" : "");
}

// A guide at the nearest recorded step: the main lines' values there, and the member closest by.
function hover(svg, chart, at) {
  const guide = draw(svg, "line", { class: "guide", y1: at.top, y2: at.height - at.bottom, visibility: "hidden" });
  const dot = draw(svg, "circle", { r: 4, visibility: "hidden" });
  const area = draw(svg, "rect", { class: "hit", x: at.left, y: at.top,
    width: Math.max(0, at.width - at.left - at.right), height: at.height - at.top - at.bottom });
  const steps = [...new Set(chart.lines.flatMap((l) => l.points.map((p) => p[0])))].sort((a, b) => a - b);
  area.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const px = event.clientX - box.left, py = event.clientY - box.top;
    const step = steps.reduce((a, b) => (Math.abs(at.x(b) - px) < Math.abs(at.x(a) - px) ? b : a));
    const here = chart.lines.map((line) => ({ line, point: line.points.find((p) => p[0] === step) })).filter((h) => h.point);
    const nearest = here.reduce((a, b) => (Math.abs(at.y(b.point[1]) - py) < Math.abs(at.y(a.point[1]) - py) ? b : a));
    const shown = here.filter((h) => h.line.main || h === nearest || h.line.name === picked);
    guide.setAttribute("x1", at.x(step));
    guide.setAttribute("x2", at.x(step));
    guide.setAttribute("visibility", "visible");
    dot.setAttribute("cx", at.x(step));
    dot.setAttribute("cy", at.y(nearest.point[1]));
    dot.style.fill = colour(nearest.line.colour);
    dot.setAttribute("visibility", "visible");
    showTip(event, ["step " + step, ...shown.map((h) => h.line.name + "  " + format(h.point[1], chart.format))].join("\n"));
  });
  area.addEventListener("pointerleave", () => {
    guide.setAttribute("visibility", "hidden");
    dot.setAttribute("visibility", "hidden");
    hideTip();
  });
}
