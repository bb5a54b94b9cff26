"use strict";
// Line charts: thick lines are roles, task types or arms, thin lines are members or seeds. A line
// may carry a band: points are then [step, value, low, high].

const SMOOTH = 9; // points of the running mean when smoothing is on
let smoothing = false;
const repaints = [];

function lineChart(host, chart, data) {
  const { figure, frame } = card(host, chart.title, chart.note, () => lineRows(chart));
  const main = chart.lines.filter((l) => l.main);
  if (main.length > 1 || chart.lines.length > 1) {
    legend(figure, main.map((l) => [l.colour, l.name, l.dash]));
    figure.insertBefore(figure.lastChild, frame);
  }
  const paint = (width) => paintLines(frame, chart, data, width);
  repaints.push(() => frame.clientWidth && paint(Math.floor(frame.clientWidth)));
  onWidth(frame, paint);
}

// Whether a line is drawn as its running mean: not what only grows or is rare (`chart.smooth`).
function softened(chart, line) {
  return smoothing && chart.smooth && line.points.length > 2 * SMOOTH;
}

// A line's points in pieces: it is broken where the individual in a slot changes.
function pieces(line) {
  const edges = [0, ...(line.starts || []), line.points.length];
  return edges.slice(1).map((end, i) => line.points.slice(edges[i], end));
}

function softPoints(line) {
  return pieces(line).flatMap(smooth);
}

// The running mean; at the ends it takes the points that there are.
function smooth(points) {
  const half = (SMOOTH - 1) / 2;
  return points.map((p, i) => {
    const some = points.slice(Math.max(0, i - half), i + half + 1);
    return [p[0], some.reduce((sum, q) => sum + q[1], 0) / some.length];
  });
}

function scales(chart, data, width) {
  const at = { width, height: 220, left: 44, right: 10, top: 8, bottom: 24 };
  const peers = data.charts.filter((other) => other === chart || (chart.scale && other.scale === chart.scale));
  const ys = (from, to) => peers.flatMap((peer) => peer.lines).flatMap((l) => l.points.flatMap((p) => p.slice(from, to)));
  let low = Infinity, high = -Infinity;
  for (const y of ys(1, 2)) { low = Math.min(low, y); high = Math.max(high, y); }
  const share = chart.format === "percent" && high <= 1 && low >= 0;
  // Wide bands may widen the axis by half of what the lines need; beyond, they are cut.
  const room = (high - low) / 2 || Math.abs(high) / 10, bounds = ys(2, 4);
  const lowest = Math.max(low - room, share ? 0 : -Infinity), highest = Math.min(high + room, share ? 1 : Infinity);
  for (const y of bounds) { low = Math.max(lowest, Math.min(low, y)); high = Math.min(highest, Math.max(high, y)); }
  if (share) [low, high] = widened(low, high);
  if (high - low < 1e-9) { const pad = Math.abs(high) * 0.05 || 0.5; low -= pad; high += pad; }
  at.levels = ticks(low, high, 4);
  // A share ends at 0% and 100%, whatever room the round numbers would leave.
  if (share) at.levels = at.levels.filter((l) => l <= 1 + 1e-9 && l >= -1e-9);
  if (at.levels.length < 2) at.levels = [low, high];
  low = at.levels[0]; high = at.levels[at.levels.length - 1];
  at.x = (step) => at.left + ((width - at.left - at.right) * step) / (data.steps || 1);
  at.y = (value) => at.top + ((at.height - at.top - at.bottom) * (high - Math.min(high, Math.max(low, value)))) / (high - low);
  return at;
}

// At least ten points of a share are shown, so that a change of one does not fill the plot.
function widened(low, high) {
  const more = Math.max(0, 0.1 - (high - low)) / 2, shift = Math.max(0, more - low) - Math.max(0, high + more - 1);
  return [Math.max(0, low - more + shift), Math.min(1, high + more + shift)];
}

function paintLines(frame, chart, data, width) {
  const at = scales(chart, data, width), { x, y } = at;
  const told = chart.lines.filter((l) => l.main).map((l) => l.name + " from " +
    format(l.points[0][1], chart.format) + " to " + format(l.points[l.points.length - 1][1], chart.format));
  const svg = canvas(at.height, chart.title + ": " + told.join(", ") + ". Arrow keys read the values.", "img");
  svg.setAttribute("tabindex", "0");
  for (const level of at.levels) {
    draw(svg, "line", { class: "grid", x1: at.left, x2: width - at.right, y1: y(level), y2: y(level) });
    draw(svg, "text", { x: at.left - 6, y: y(level) + 4, "text-anchor": "end" }, tickLabel(level, at.levels, chart.format));
  }
  for (const step of new Set((data.lineage || []).map((child) => child.step)))
    draw(svg, "line", { class: "event", x1: x(step), x2: x(step), y1: at.height - at.bottom, y2: at.height - at.bottom - 5 });
  stepAxis(svg, data.steps, x, at.height - 8, width);
  const path = (points, starts) => points.map((p, i) =>
    (!i || (starts && starts.includes(i)) ? "M" : "L") + x(p[0]).toFixed(1) + " " + y(p[1]).toFixed(1)).join("");
  for (const line of [...chart.lines].sort((a, b) => a.main - b.main)) {
    const band = line.points.filter((p) => p.length > 3);
    if (band.length > 1) {
      const up = band.map((p) => [p[0], p[3]]), down = band.map((p) => [p[0], p[2]]).reverse();
      const area = draw(svg, "path", { class: "band", d: path(up) + path(down).replace("M", "L") + "Z" });
      area.style.fill = colour(line.colour);
    }
    const soft = softened(chart, line);
    const stroke = (points, style) => {
      const drawn = draw(svg, "path", { class: style, "data-name": line.name, d: path(points, line.starts) });
      drawn.style.stroke = colour(line.colour);
      if (line.dash) drawn.setAttribute("stroke-dasharray", line.dash);
    };
    if (soft && line.main) stroke(line.points, "line");
    stroke(soft ? softPoints(line) : line.points, line.main ? "line main" : "line");
    const dots = line.main && line.points.length < 8 ? line.points : pieces(line).filter((piece) => piece.length === 1).flat();
    for (const p of dots) {
      const dot = draw(svg, "circle", { class: "line", cx: x(p[0]), cy: y(p[1]), r: line.main ? 2.5 : 1.5, "data-name": line.name });
      dot.style.fill = dot.style.stroke = colour(line.colour);
    }
  }
  hover(svg, chart, at);
  frame.replaceChildren(svg);
  highlight(svg);
}

function tickLabel(level, levels, kind) {
  const scale = kind === "percent" ? 100 : 1;
  const exact = (d) => levels.every((l) => Math.abs(scale * l * 10 ** d - Math.round(scale * l * 10 ** d)) < 1e-6);
  const decimals = [0, 1, 2, 3].find(exact) ?? 4;
  return (Math.abs(level) >= 10000 ? Math.round(level).toLocaleString("en") : (scale * level).toFixed(decimals)) + (scale > 1 ? "%" : "");
}

// A guide at the nearest recorded step: the main lines' values there, and the thin one closest by.
function hover(svg, chart, at) {
  const guide = draw(svg, "line", { class: "guide", y1: at.top, y2: at.height - at.bottom, visibility: "hidden" });
  const dot = draw(svg, "circle", { class: "spot", r: 4.5, visibility: "hidden" });
  const area = draw(svg, "rect", { class: "hit", x: at.left, y: at.top,
    width: Math.max(0, at.width - at.left - at.right), height: at.height - at.top - at.bottom });
  const steps = [...new Set(chart.lines.flatMap((l) => l.points.map((p) => p[0])))].sort((a, b) => a - b);
  // What is pointed at is what is drawn, also where that is a running mean.
  const drawn = new Map(chart.lines.map((l) => [l, softened(chart, l) ? softPoints(l) : l.points]));
  const soft = chart.lines.some((l) => softened(chart, l));
  let place = -1;
  const read = (step, py, event) => {
    place = steps.indexOf(step);
    const here = chart.lines.map((line) => ({ line, i: line.points.findIndex((p) => p[0] === step) })).filter((h) => h.i >= 0)
      .map(({ line, i }) => ({ line, point: drawn.get(line)[i], alone: line.points[i][1] }));
    const nearest = here.reduce((a, b) => (Math.abs(at.y(b.point[1]) - py) < Math.abs(at.y(a.point[1]) - py) ? b : a));
    const shown = here.filter((h) => h.line.main || h === nearest || h.line.name === picked);
    guide.setAttribute("x1", at.x(step));
    guide.setAttribute("x2", at.x(step));
    dot.setAttribute("cx", at.x(step));
    dot.setAttribute("cy", at.y(nearest.point[1]));
    dot.style.fill = colour(nearest.line.colour);
    for (const mark of [guide, dot]) mark.setAttribute("visibility", "visible");
    const value = (p) => format(p[1], chart.format) + (p.length > 3 ? ` (${format(p[2], chart.format)} to ${format(p[3], chart.format)})` : "");
    const alone = (h) => (softened(chart, h.line) ? ` (${format(h.alone, chart.format)})` : "");
    showTip(event, { head: "step " + step + (soft ? ": running mean (this step alone)" : ""),
      rows: shown.map((h) => [h.line.colour, h.line.name, value(h.point) + alone(h)]) });
  };
  const leave = () => {
    for (const mark of [guide, dot]) mark.setAttribute("visibility", "hidden");
    hideTip();
  };
  const point = (event) => {
    const box = svg.getBoundingClientRect();
    const px = event.clientX - box.left;
    read(steps.reduce((a, b) => (Math.abs(at.x(b) - px) < Math.abs(at.x(a) - px) ? b : a)), event.clientY - box.top, event);
  };
  area.addEventListener("pointermove", point);
  area.addEventListener("pointerdown", point);
  area.addEventListener("pointerleave", leave);
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[event.key];
    if (event.key === "Escape") leave();
    if (!move) return;
    event.preventDefault();
    const step = steps[Math.max(0, Math.min(steps.length - 1, place + move))];
    const box = svg.getBoundingClientRect();
    read(step, at.top, { clientX: box.left + at.x(step), clientY: box.top + at.top + 30 });
  });
  svg.addEventListener("blur", leave);
}

let picked = null;

// Puts the picked line in front in one figure.
function highlight(svg) {
  const has = picked !== null && [...svg.querySelectorAll("[data-name]")].some((n) => n.dataset.name === picked);
  svg.classList.toggle("picked", has);
  for (const node of svg.querySelectorAll("[data-name]")) node.classList.toggle("chosen", node.dataset.name === picked);
}

// The switch for smoothing, with what it does.
function smoothingSwitch(host) {
  const box = make("input", { type: "checkbox" });
  box.checked = smoothing;
  box.addEventListener("change", () => {
    smoothing = box.checked;
    for (const repaint of repaints) repaint();
  });
  host.append(make("label", { class: "switch" }, box, `running mean of ${SMOOTH} steps`));
}
