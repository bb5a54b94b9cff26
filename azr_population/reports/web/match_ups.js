"use strict";
// Match-ups: teachers by students; the colour is the share of the tasks that the student solved.

function matchUpTable(host, table) {
  if (!table.teachers.length) {
    host.append(make("p", { class: "empty" }, "No match is recorded."));
    return;
  }
  host.append(make("p", { class: "note" },
    "Solve rate of the student (column) on the valid tasks of the teacher (row); the number below counts their matches."));
  const scroll = make("div", { class: "scroll" });
  const drawn = make("table", { class: "heat" });
  const head = make("tr");
  head.append(make("th", { scope: "col" }, ""));
  for (const student of table.students) head.append(make("th", { scope: "col" }, short(student)));
  const top = make("thead");
  top.append(head);
  const body = make("tbody");
  const rates = table.cells.flat().filter((c) => c && c.solve_rate !== null).map((c) => c.solve_rate);
  const low = Math.min(...rates), high = Math.max(...rates);
  table.teachers.forEach((teacher, t) => {
    const row = make("tr");
    row.append(make("th", { scope: "row" }, short(teacher)));
    table.students.forEach((student, s) => row.append(cell(teacher, student, table.cells[t][s], low, high)));
    body.append(row);
  });
  drawn.append(top, body);
  scroll.append(drawn);
  host.append(scroll);
}

function cell(teacher, student, met, low, high) {
  if (!met) return make("td", { class: "none" }, "-");
  const node = make("td");
  const rate = met.solve_rate;
  node.append(rate === null ? "-" : format(rate, "percent").replace(/\.\d/, ""), make("br"), make("small", {}, "×" + met.matches));
  // At most 0.45 opaque: text keeps its contrast in both themes.
  if (rate !== null) {
    const share = high > low ? (rate - low) / (high - low) : 0.5;
    node.style.background = `rgba(var(--heat), ${(0.05 + 0.4 * share).toFixed(3)})`;
  }
  describe(node, `${teacher} vs ${student}\n${met.matches} matches, ${met.tasks} valid tasks\n` +
    (rate === null ? "none graded" : format(rate, "percent") + " solved"));
  return node;
}

// teacher_3 -> T3, so that eight columns fit a phone.
function short(name) {
  const parts = /^(teacher|student|agent)_(\d+)$/.exec(name);
  return parts ? parts[1][0].toUpperCase() + parts[2] : name;
}
