"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
contents(document.getElementById("contents"));
intervals(data.verdicts);
for (const section of document.querySelectorAll("[data-charts]")) {
  const charts = data.charts.filter((chart) => chart.section === section.dataset.charts);
  const grid = make("div", { class: "charts" });
  for (const chart of charts) lineChart(grid, chart, data);
  balance(grid, 300);
  const still = data.constant.filter((one) => one.section === section.dataset.charts).map((one) => one.text);
  if (charts.length) section.append(grid);
  if (still.length) section.append(make("p", { class: "note still" }, still.join(" ")));
  if (!charts.length && !still.length) section.append(make("p", { class: "empty" }, "Nothing is recorded."));
}
addEventListener("scroll", hideTip, { passive: true });
