"use strict";
// Why proposals were refused: per span of steps a column, its parts stacked by reason.

function reasonsChart(host, reasons, data) {
  if (!reasons.names.length) return;
  const { figure, frame } = card(host, "Refused proposals by reason", "share of all proposals",
    () => [["first step", "last step", "proposed", ...reasons.names], ...reasons.buckets.map((b) => [b.first, b.last, b.proposed, ...b.counts])]);
  legend(figure, reasons.names.map((name, i) => ["part-" + (i % 8), plain(name)]), "square");
  figure.insertBefore(figure.lastChild, frame);
  onWidth(frame, (width) => paintReasons(frame, reasons, data, width));
}

// syntax_error -> syntax error
function plain(name) {
  return name.replace(/_/g, " ");
}

function paintReasons(frame, reasons, data, width) {
  const height = 220, left = 44, right = 10, top = 8, bottom = 24;
  const shares = reasons.buckets.map((b) => b.counts.reduce((sum, n) => sum + n, 0) / (b.proposed || 1));
  let levels = ticks(0, Math.max(0.02, ...shares), 4).filter((l) => l <= 1 + 1e-9);
  const high = levels[levels.length - 1];
  const x = (step) => left + ((width - left - right) * step) / (data.steps || 1);
  const y = (share) => top + ((height - top - bottom) * (high - share)) / high;
  const svg = canvas(height, "Refused proposals: from " + format(shares[0], "percent") + " to " +
    format(shares[shares.length - 1], "percent") + " of all; most often " + reasons.names[0]);
  for (const level of levels) {
    draw(svg, "line", { class: "grid", x1: left, x2: width - right, y1: y(level), y2: y(level) });
    draw(svg, "text", { x: left - 6, y: y(level) + 4, "text-anchor": "end" }, tickLabel(level, levels, "percent"));
  }
  stepAxis(svg, data.steps, x, height - 8, width);
  reasons.buckets.forEach((bucket, b) => {
    const from = x(bucket.first - 1), to = x(bucket.last), gap = to - from > 5 ? 1 : 0;
    let base = 0;
    bucket.counts.forEach((count, i) => {
      const share = count / (bucket.proposed || 1);
      const part = draw(svg, "rect", { x: from + gap / 2, width: Math.max(0.5, to - from - gap), y: y(base + share), height: Math.max(0, y(base) - y(base + share)) });
      part.style.fill = colour("part-" + (i % 8));
      base += share;
    });
    const span = bucket.first === bucket.last ? "step " + bucket.first : `steps ${bucket.first} to ${bucket.last}`;
    const area = draw(svg, "rect", { class: "hit", x: from, width: Math.max(1, to - from), y: top, height: height - top - bottom });
    describe(area, { head: `${span}: ${format(shares[b], "percent")} of ${bucket.proposed} refused`,
      rows: reasons.names.map((name, i) => ["part-" + (i % 8), plain(name), String(bucket.counts[i])]).reverse() });
  });
  frame.replaceChildren(svg);
}
