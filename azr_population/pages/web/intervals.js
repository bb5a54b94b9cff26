"use strict";
// The differences of the verdict table as marks on a line: zero in the middle, the interval, the mean.
// Rows with the same scale are drawn to the same one; without an interval nothing is drawn.

function intervals(verdicts) {
  for (const host of document.querySelectorAll(".interval")) {
    const row = verdicts[host.dataset.row], shown = row.intervals[host.dataset.arm];
    if (!shown) continue;
    const alike = verdicts.filter((other) => other.scale === row.scale).flatMap((other) => other.intervals).filter(Boolean);
    const reach = Math.max(1e-12, ...alike.flat().map(Math.abs));
    const width = host.closest(".forest") ? 240 : 150, height = 22, y = height / 2, x = (value) => width / 2 + (value / reach) * (width / 2 - 6);
    const svg = canvas(height, "");
    svg.setAttribute("aria-hidden", "true");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    draw(svg, "line", { class: "zero", x1: width / 2, x2: width / 2, y1: 0, y2: height });
    const [mean, low, high] = shown, sure = low > 0 || high < 0;
    draw(svg, "line", { class: sure ? "reach sure" : "reach", x1: x(low), x2: x(high), y1: y, y2: y });
    draw(svg, "circle", { class: sure ? "mean sure" : "mean", cx: x(mean), cy: y, r: 4 });
    host.append(svg);
  }
}
