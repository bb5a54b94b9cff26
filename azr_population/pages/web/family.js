"use strict";
// Family trees: a row per individual, from the step in which it was born to that in which it was
// replaced; children branch off their first parent, a dashed line leads from the second.

function familyTrees(host, data) {
  if (!data.family.length) {
    host.append(make("p", { class: "empty" }, "Nobody was replaced: everybody is a founder."));
    return;
  }
  const operators = [...new Set(data.family.flatMap((tree) => tree.people.map((p) => p.operator)))].filter((o) => o !== "start").sort();
  const shades = {
    operator: () => (p) => (p.operator === "start" ? "founder" : "op-" + (operators.indexOf(p.operator) % 8)),
    founder: (tree) => {
      const founders = tree.people.filter((p) => !p.parents.length).map((p) => p.id);
      return (p) => memberShade(tree.role, founders.indexOf(p.founder), founders.length);
    },
  };
  let by = "operator";
  const bar = make("div", { class: "bar" });
  host.append(make("p", { class: "note" },
    "□ founder  ○ child of one parent (mutation)  ◇ child of two (crossover)  × replaced  ● alive. Point at somebody, or use the arrow keys, to see ancestors and descendants."), bar);
  const paints = [];
  choice(bar, "Colour by", [["operator", "coloured by operator"], ["founder", "by founder"]], (value) => {
    by = value;
    for (const paint of paints) paint();
  });
  for (const tree of data.family) {
    const alive = tree.people.filter((p) => p.died === null);
    const founders = new Set(alive.map((p) => p.founder)).size;
    const { figure, frame } = card(host, tree.role[0].toUpperCase() + tree.role.slice(1) + "s",
      `${tree.people.length + tree.left_out} individuals; the ${alive.length} alive descend from ${founders} founder${founders === 1 ? "" : "s"}` +
      (tree.left_out ? `; ${tree.left_out} that were replaced and have no children are not drawn` : ""), () => treeRows(tree));
    const key = make("div");
    figure.insertBefore(key, frame);
    const paint = (width) => {
      key.replaceChildren();
      const shade = shades[by](tree);
      const used = by === "operator" ? operators.filter((o) => tree.people.some((p) => p.operator === o)).map((o) => ["op-" + (operators.indexOf(o) % 8), o])
        : tree.people.filter((p) => !p.parents.length).map((p) => [shade(p), p.name]);
      legend(key, used, "square");
      paintTree(frame, tree, data, width, shade);
    };
    dark.addEventListener("change", () => paint(Math.floor(frame.clientWidth)));
    paints.push(() => frame.clientWidth && paint(Math.floor(frame.clientWidth)));
    onWidth(frame, paint);
  }
}

function paintTree(frame, tree, data, width, shade) {
  const people = tree.people, byId = new Map(people.map((p) => [p.id, p]));
  const left = 38, right = 66, top = 10, bottom = 26;
  const row = Math.max(8, Math.min(22, 600 / people.length));
  const height = top + people.length * row + bottom;
  const x = (step) => left + ((width - left - right) * step) / (data.steps || 1);
  const y = (p) => top + (p.row + 0.5) * row;
  const svg = canvas(height, `Family tree of the ${tree.role}s; every replacement is in the table below`, "application");
  svg.setAttribute("tabindex", "0");
  for (const step of stepTicks(data.steps, width > 500 ? 8 : 4))
    draw(svg, "line", { class: "grid", x1: x(step), x2: x(step), y1: top, y2: height - bottom });
  stepAxis(svg, data.steps, x, height - 8, width);
  const parts = new Map();
  for (const p of people) {
    const group = draw(svg, "g", { class: "person" });
    const born = x(p.born), end = x(p.died ?? data.last), here = y(p);
    p.parents.forEach((id, i) => {
      const parent = byId.get(id);
      if (!parent) return;
      const from = y(parent), bend = Math.min(6, Math.abs(here - from) / 2) * Math.sign(here - from);
      const d = i ? `M${born - 7} ${from}C${born - 1} ${from} ${born - 7} ${here} ${born} ${here}`
        : `M${born - 6} ${from}Q${born} ${from} ${born} ${from + bend}V${here}`;
      draw(group, "path", { class: i ? "descent second" : "descent", d });
    });
    const life = draw(group, "line", { class: p.died === null ? "life alive" : "life", x1: born, x2: Math.max(end, born + 1), y1: here, y2: here });
    life.style.stroke = tint(shade(p));
    const glyph = mark(group, p, born, here, Math.min(4.5, row / 2));
    glyph.style.fill = tint(shade(p));
    if (p.died !== null) draw(group, "path", { class: "death", d: `M${end - 2.5} ${here - 2.5}l5 5m0 -5l-5 5` });
    else draw(group, "circle", { class: "living", cx: end, cy: here, r: 3.5 }).style.fill = tint(shade(p));
    const hit = draw(group, "rect", { class: "hit", x: born - 6, width: Math.max(12, end - born + 10), y: here - row / 2, height: row });
    parts.set(p.id, group);
    const show = (event) => { follow(svg, parts, people, p); showTip(event, told(p, byId, data.last)); };
    hit.addEventListener("pointermove", show);
    hit.addEventListener("pointerdown", show);
    hit.addEventListener("pointerleave", () => { unfollow(svg); hideTip(); });
  }
  names(svg, people.filter((p) => !p.parents.length), x(0), -1, y, height - bottom, (p) => short(p.name));
  names(svg, people.filter((p) => p.died === null), x(data.last), 1, y, height - bottom, (p) => `${short(p.name)} g${p.generation}`);
  keys(svg, people, byId, (p) => {
    follow(svg, parts, people, p);
    const box = svg.getBoundingClientRect();
    showTip({ clientX: box.left + x(p.born), clientY: box.top + y(p) }, told(p, byId, data.last));
  });
  frame.replaceChildren(svg);
}

function mark(group, p, x, y, r) {
  if (!p.parents.length) return draw(group, "rect", { class: "glyph", x: x - r, y: y - r, width: 2 * r, height: 2 * r });
  if (p.parents.length > 1) return draw(group, "path", { class: "glyph", d: `M${x - r - 1} ${y}L${x} ${y - r - 1}L${x + r + 1} ${y}L${x} ${y + r + 1}Z` });
  return draw(group, "circle", { class: "glyph", cx: x, cy: y, r });
}

// Names along an edge (side -1: left, 1: right), moved apart where rows lie close.
function names(svg, people, edge, side, y, bottom, words) {
  const sorted = [...people].sort((a, b) => a.row - b.row);
  const places = sorted.map((p) => y(p));
  for (let i = 1; i < places.length; i++) places[i] = Math.max(places[i], places[i - 1] + 12);
  let limit = bottom;
  for (let i = places.length - 1; i >= 0; i--) { places[i] = Math.min(places[i], limit); limit = places[i] - 12; }
  sorted.forEach((p, i) => {
    draw(svg, "path", { class: "leader", d: `M${edge + 6 * side} ${y(p)}L${edge + 12 * side} ${places[i]}` });
    draw(svg, "text", { class: "row", x: edge + 14 * side, y: places[i] + 4, "text-anchor": side < 0 ? "end" : "start" }, words(p));
  });
}

function follow(svg, parts, people, person) {
  const byId = new Map(people.map((p) => [p.id, p]));
  const kin = new Set([person.id]);
  const up = [person];
  while (up.length) for (const id of up.pop().parents)
    if (byId.has(id) && !kin.has(id)) { kin.add(id); up.push(byId.get(id)); }
  const down = new Set([person.id]);
  for (const p of people) if (p.parents.some((id) => down.has(id))) { down.add(p.id); kin.add(p.id); }
  svg.classList.add("following");
  for (const [id, group] of parts) {
    group.classList.toggle("kin", kin.has(id));
    group.classList.toggle("self", id === person.id);
  }
}

function unfollow(svg) {
  svg.classList.remove("following");
}

function keys(svg, people, byId, show) {
  const rows = [...people].sort((a, b) => a.row - b.row);
  let now = -1;
  svg.addEventListener("keydown", (event) => {
    const p = rows[now];
    let next = null;
    if (event.key === "ArrowDown") next = rows[Math.min(rows.length - 1, now + 1)];
    if (event.key === "ArrowUp") next = rows[Math.max(0, now - 1)];
    if (event.key === "ArrowLeft" && p) next = byId.get(p.parents[0]) || p;
    if (event.key === "ArrowRight" && p) next = people.find((one) => one.parents.includes(p.id)) || p;
    if (event.key === "Escape") { unfollow(svg); hideTip(); }
    if (!next) return;
    event.preventDefault();
    now = rows.indexOf(next);
    show(next);
  });
  svg.addEventListener("blur", () => { unfollow(svg); hideTip(); });
}

function treeRows(tree) {
  return [["id", "member", "generation", "born", "replaced", "operator", "parents", "founder", "fitness when replaced"],
    ...tree.people.map((p) => [p.id, p.name, p.generation, p.born, p.died, p.operator, p.parents.join(" "), p.founder, p.fitness])];
}

function told(p, byId, last) {
  const names = p.parents.map((id) => byId.get(id)).filter(Boolean).map((q) => `${q.name} (generation ${q.generation})`);
  const options = Object.entries(p.options).map(([k, v]) => k + "=" + v).join(", ");
  const rows = [["", "born", p.operator === "start" ? "founder" : `step ${p.born} by ${p.operator}`]];
  if (names.length) rows.push(["", names.length > 1 ? "parents" : "parent", names.join(" and ")]);
  if (options) rows.push(["", "options", options]);
  rows.push(["", "children", String(p.heirs)], ["", "fate", p.died === null ? (p.born === last && last ? "alive, has not played yet" : "alive") :
    `replaced at step ${p.died}` + (p.fitness === null ? "" : `, fitness ${format(p.fitness, "number")}`)]);
  return { head: `${p.name}, generation ${p.generation}`, rows };
}
