"use strict";
// The differences of the verdict table as marks on a line: zero in the middle, the interval, the mean.

function intervals(verdicts) {
  for (const host of document.querySelectorAll(".interval")) {
    const row = verdicts[host.dataset.row], one = row[host.dataset.arm];
    if (!one) continue;
    const reach = Math.max(1e-12, ...row.filter(Boolean).flat().filter((v) => v !== null).map(Math.abs));
    const width = 150, height = 22, y = height / 2, x = (value) => width / 2 + (value / reach) * (width / 2 - 6);
    const svg = canvas(height, "");
    svg.setAttribute("aria-hidden", "true");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    draw(svg, "line", { class: "zero", x1: width / 2, x2: width / 2, y1: 0, y2: height });
    const [mean, low, high] = one;
    const sure = low !== null && (low > 0 || high < 0);
    if (low !== null) draw(svg, "line", { class: sure ? "reach sure" : "reach", x1: x(low), x2: x(high), y1: y, y2: y });
    draw(svg, "circle", { class: sure ? "mean sure" : "mean", cx: x(mean), cy: y, r: 4 });
    host.append(svg);
  }
}
