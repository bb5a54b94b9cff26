"use strict";
// Match-ups: teachers by students, in the colour of whoever wins more of the tasks.

function matchUpTable(host, table, lineage) {
  if (!table.teachers.length) {
    host.append(make("p", { class: "empty" }, "No match is recorded."));
    return;
  }
  if (table.teachers.every((name) => table.students.includes(name))) {
    host.append(make("p", { class: "empty" }, "A single agent meets nobody but itself."));
    return;
  }
  host.append(make("p", { class: "note" },
    "Share of a teacher's valid tasks (row) that a student (column) solved. ×3: they met three times." + places(table, lineage)));
  const drawn = make("table", { class: "heat" });
  const head = make("tr", {}, make("th", { scope: "col" }, ""));
  for (const student of table.students) head.append(make("th", { scope: "col" }, short(student)));
  head.append(make("th", { scope: "col", class: "mean" }, "all"));
  const body = make("tbody");
  const row = (name, cells, who) => {
    const line = make("tr", {}, make("th", { scope: "row" }, short(name)));
    cells.forEach((met, s) => line.append(cell(who || name, table.students[s], met)));
    line.append(mean(cells, who || name, "all students"));
    body.append(line);
  };
  table.teachers.forEach((teacher, t) => row(teacher, table.cells[t]));
  const foot = make("tr", { class: "mean" }, make("th", { scope: "row" }, "all"));
  table.students.forEach((student, s) => foot.append(mean(table.cells.map((line) => line[s]), "all teachers", student)));
  foot.append(mean(table.cells.flat(), "all teachers", "all students"));
  body.append(foot);
  drawn.append(make("thead", {}, head), body);
  host.append(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Match-ups" }, drawn));
  const scale = make("div", { class: "heat-scale", role: "img", "aria-label": "Colours: from 10% solved, where the teacher wins, over 50% to 90%, where the student wins" });
  for (const rate of [0.1, 0.3, 0.5, 0.7, 0.9]) {
    const patch = make("i", {});
    patch.style.background = shade(rate);
    scale.append(make("span", {}, patch, 100 * rate + "%"));
  }
  host.append(make("p", { class: "heat-ends" }, make("span", {}, "← teacher wins"), make("span", {}, "student wins →")), scale);
  saveButtons(host.closest("figure"), "Match-ups", () => [["teacher", "student", "matches", "valid tasks", "share solved"],
    ...table.teachers.flatMap((teacher, t) => table.students.map((student, s) => [teacher, student, table.cells[t][s]]))
      .map(([teacher, student, met]) => [teacher, student, met ? met.matches : 0, met ? met.tasks : 0, met ? met.solve_rate : null])]);
}

// Members are replaced, their names stay: what is counted is not of one individual.
function places(table, lineage) {
  const replaced = (names) => lineage.filter((child) => names.includes(child.child)).length;
  const teachers = replaced(table.teachers), students = replaced(table.students);
  const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
  return teachers + students ? " A row or column is a place: it counts everybody who held it, one after another " +
    `(${count(teachers, "teacher")} and ${count(students, "student")} were replaced).` : "";
}

function mean(cells, teacher, student) {
  const met = cells.filter(Boolean), tasks = met.reduce((sum, c) => sum + c.tasks, 0);
  const solved = met.reduce((sum, c) => sum + c.tasks * (c.solve_rate ?? 0), 0);
  return cell(teacher, student, met.length && { matches: met.reduce((sum, c) => sum + c.matches, 0), tasks, solve_rate: tasks ? solved / tasks : null });
}

// At most 0.45 opaque: text keeps its contrast in both themes.
function shade(rate) {
  const far = Math.min(1, Math.abs(rate - 0.5) / 0.4);
  return `rgba(var(--heat-${rate < 0.5 ? "low" : "high"}), ${(0.04 + 0.42 * far).toFixed(3)})`;
}

function cell(teacher, student, met) {
  if (!met) return make("td", { class: "none" }, "-");
  const rate = met.solve_rate;
  const node = make("td", { tabindex: "0" }, rate === null ? "-" : (100 * rate).toFixed(0) + "%", make("small", {}, "×" + met.matches));
  if (rate !== null) node.style.background = shade(rate);
  describe(node, `${teacher} against ${student}\n${met.matches} matches, ${met.tasks} valid tasks\n` +
    (rate === null ? "none graded" : format(rate, "percent") + " solved"));
  return node;
}

// teacher_3 -> T3, so that eight columns fit a phone.
function short(name) {
  const parts = /^(teacher|student|agent)_(\d+)$/.exec(name);
  return parts ? parts[1][0].toUpperCase() + parts[2] : name;
}
