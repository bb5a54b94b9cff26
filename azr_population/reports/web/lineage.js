"use strict";
// Lineage: a row per slot, a bar per generation, and a curve from each parent to its child.

function lineageChart(host, data) {
  if (!data.lineage.length || !data.members.length) return;
  const figure = make("figure");
  const caption = make("figcaption");
  caption.append(make("b", {}, "Replacements"),
    make("span", { class: "note" }, "a new bar is a child; curves lead from its parents; dashed: one parent (mutation)"));
  const frame = make("div");
  figure.append(caption, frame);
  host.append(figure);
  onWidth(frame, (width) => paintLineage(frame, data, width));
}

function paintLineage(frame, data, width) {
  const left = 76, right = 10, row = 26, bar = 10, top = 6, bottom = 24;
  const names = data.members.map((m) => m.name);
  const roles = Object.fromEntries(data.members.map((m) => [m.name, m.role]));
  const height = top + names.length * row + bottom;
  const x = (step) => left + ((width - left - right) * step) / (data.steps || 1);
  const y = (name) => top + (names.indexOf(name) + 0.5) * row;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("height", height);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", data.lineage.length + " replacements; all are in the table below");
  for (const step of stepTicks(data.steps, width > 500 ? 8 : 4)) {
    draw(svg, "line", { class: "grid", x1: x(step), x2: x(step), y1: top, y2: height - bottom });
    draw(svg, "text", { x: x(step), y: height - 8, "text-anchor": step === data.steps ? "end" : "middle" }, step);
  }
  for (const name of names) {
    draw(svg, "text", { class: "row", x: left - 8, y: y(name) + 4, "text-anchor": "end" }, name);
    const births = data.lineage.filter((c) => c.child === name);
    const starts = [0, ...births.map((c) => c.step)];
    starts.forEach((start, i) => {
      const end = i + 1 < starts.length ? starts[i + 1] : data.last;
      const drawn = draw(svg, "rect", { x: x(start) + 1, y: y(name) - bar / 2, height: bar, rx: 2,
        width: Math.max(1, x(end) - x(start) - 2), opacity: i % 2 ? 0.85 : 0.45 });
      drawn.style.fill = colour(roles[name]);
      const birth = births[i - 1];
      describe(drawn, birth ? told(birth) : name + ", from the start");
    });
  }
  for (const child of data.lineage) {
    for (const parent of child.parents.filter((p) => names.includes(p))) {
      const x1 = x(child.step), bend = Math.min(18, 4 + Math.abs(y(child.child) - y(parent)) / 6);
      const curve = draw(svg, "path", { class: "kin",
        d: `M${x1} ${y(parent)}C${x1 - bend} ${y(parent)} ${x1 - bend} ${y(child.child)} ${x1} ${y(child.child)}` });
      if (child.parents.length < 2) curve.setAttribute("stroke-dasharray", "4 3");
    }
    if (!names.includes(child.child)) continue;
    const dot = draw(svg, "circle", { cx: x(child.step), cy: y(child.child), r: 5 });
    dot.style.fill = "var(--ink)";
    describe(dot, told(child));
  }
  frame.replaceChildren(svg);
}

function told(child) {
  const options = Object.entries(child.options).map(([k, v]) => k + "=" + v).join(", ");
  return `step ${child.step}: ${child.child}, generation ${child.generation}\n` +
    `${child.operator}(${child.parents.join(", ")})${options ? "\n" + options : ""}`;
}

function describe(node, text) {
  node.addEventListener("pointermove", (event) => showTip(event, text));
  node.addEventListener("pointerleave", hideTip);
}
