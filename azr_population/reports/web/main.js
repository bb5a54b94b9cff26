"use strict";

let picked = null;

// Puts the picked member's line in front in one figure.
function highlight(svg) {
  const has = picked !== null && [...svg.querySelectorAll("[data-name]")].some((n) => n.dataset.name === picked);
  svg.classList.toggle("picked", has);
  for (const node of svg.querySelectorAll("[data-name]")) node.classList.toggle("chosen", node.dataset.name === picked);
}

function memberPicker(host, members) {
  for (const member of members.length > 1 ? members : []) {
    const button = make("button", { type: "button", "aria-pressed": "false" });
    button.append(make("i", { class: "dot " + (COLOURS.includes(member.role) ? member.role : "") }), member.name);
    button.addEventListener("click", () => {
      picked = picked === member.name ? null : member.name;
      for (const other of host.children) other.setAttribute("aria-pressed", String(other === button && picked !== null));
      document.querySelectorAll("[data-charts] svg").forEach(highlight);
    });
    host.append(button);
  }
}

const data = JSON.parse(document.getElementById("data").textContent);
memberPicker(document.getElementById("picker"), data.members);
for (const section of document.querySelectorAll("[data-charts]")) {
  const charts = data.charts.filter((chart) => chart.section === section.dataset.charts);
  if (!charts.length) {
    section.append(make("p", { class: "empty" }, "Nothing is recorded."));
    continue;
  }
  const grid = make("div", { class: "charts" });
  section.append(grid);
  for (const chart of charts) lineChart(grid, chart, data);
}
lineageChart(document.getElementById("lineage"), data);
matchUpTable(document.getElementById("match-ups"), data.match_ups);
addEventListener("scroll", hideTip, { passive: true });
