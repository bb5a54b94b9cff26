"use strict";

function memberPicker(host, members) {
  for (const member of members.length > 1 ? members : []) {
    const button = make("button", { type: "button", "aria-pressed": "false" },
      make("i", { class: "dot " + (COLOURS.includes(member.role) ? member.role : "") }), member.name);
    button.addEventListener("click", () => {
      picked = picked === member.name ? null : member.name;
      for (const other of host.children) other.setAttribute("aria-pressed", String(other === button && picked !== null));
      document.querySelectorAll("[data-charts] svg").forEach(highlight);
    });
    host.append(button);
  }
}

const data = JSON.parse(document.getElementById("data").textContent);
smoothing = data.last >= 4 * SMOOTH;
contents(document.getElementById("contents"));
memberPicker(document.getElementById("picker"), data.members);
tileRow(document.getElementById("tiles"), data);
if (smoothing) smoothingSwitch(document.getElementById("reading"));
matchUpTable(document.getElementById("match-ups"), data.match_ups, data.lineage);
for (const tasks of document.querySelectorAll(".tasks")) balance(tasks, 300);
for (const section of document.querySelectorAll("[data-charts]")) {
  const charts = data.charts.filter((chart) => chart.section === section.dataset.charts);
  const grid = make("div", { class: "charts" });
  for (const chart of charts) lineChart(grid, chart, data);
  if (section.id === "proposing") reasonsChart(grid, data.reasons, data);
  balance(grid, 300);
  const still = data.constant.filter((one) => one.section === section.dataset.charts).map((one) => one.text);
  if (grid.children.length) section.append(grid);
  if (still.length) section.append(make("p", { class: "note still" }, still.join(" ")));
  if (!section.querySelector("figure, .still")) section.append(make("p", { class: "empty" }, "Nothing is recorded."));
}
coverageMap(document.getElementById("coverage"), data);
familyTrees(document.getElementById("family"), data);
addEventListener("scroll", hideTip, { passive: true });
