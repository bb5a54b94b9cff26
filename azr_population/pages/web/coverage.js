"use strict";
// The problem space: every cell of the archive of kinds of problems, and when and by whom it was
// first filled. A slider goes back in time.

const RAMPS = { light: [[150, 208, 214], [60, 152, 166], [6, 62, 76]], dark: [[44, 98, 110], [72, 168, 182], [178, 242, 250]] };

// Time is one hue that nothing else has: what came late stands out.
function ramp(share) {
  const stops = RAMPS[dark.matches ? "dark" : "light"];
  const place = Math.max(0, Math.min(1, share)) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(place));
  const mix = stops[i].map((from, c) => Math.round(from + (stops[i + 1][c] - from) * (place - i)));
  return `rgb(${mix.join(", ")})`;
}

function coverageMap(host, data) {
  const found = data.coverage;
  if (found.missing || !found.cells.length) {
    host.append(make("p", { class: "empty" }, found.missing || "No task was placed in the problem space."));
    return;
  }
  const filled = found.cells.filter((c) => c[4] > 0);
  const { figure, frame } = card(host, "Map of the problem space",
    `A dot is a kind of problem that was met, larger with more tasks; a ring is one that was not. ${found.tasks.toLocaleString("en")} valid tasks met ${filled.length} of ${found.cells.length} kinds.`,
    () => [["kind", "panel", ...found.names.map((name) => name + " (0 to 1)"), "first step", "first member", "tasks"],
      ...found.cells.map((c, i) => [i, found.panels[c[5]], c[0], c[1], c[2], c[3], c[4]])]);
  const members = [...new Set(filled.map((c) => c[3]))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const member = (name) => memberShade(name.split("_")[0], members.indexOf(name), members.length);
  // Where the metrics are gone the tasks still tell how far the run got.
  const last = Math.max(1, data.last, ...filled.map((c) => c[2]));
  const shades = { when: (c) => ramp((c[2] - 1) / (last - 1 || 1)), whom: (c) => member(c[3]) };
  const stops = [...new Set([0, 0.25, 0.5, 0.75, 1].map((share) => Math.round(1 + share * (last - 1))))];
  let by = "when", until = last;
  const bar = make("div", { class: "bar" }), key = make("div");
  figure.insertBefore(bar, frame);
  figure.insertBefore(key, frame);
  const repaint = (width) => {
    key.replaceChildren();
    if (by === "whom") legend(key, members.map((name) => [member(name), name]), "round");
    else legend(key, stops.map((step) => [ramp((step - 1) / (last - 1 || 1)), "step " + step]), "round");
    paintCoverage(frame, found, until, width, shades[by]);
  };
  choice(bar, "Colour by", [["when", "when first met"], ["whom", "by whom"]], (value) => { by = value; repaint(Math.floor(frame.clientWidth)); });
  const slider = make("input", { type: "range", min: "1", max: String(last), value: String(last), "aria-label": "Kinds met up to step" });
  const said = make("output", {}, "up to step " + last);
  slider.addEventListener("input", () => {
    until = Number(slider.value);
    said.textContent = "up to step " + until;
    repaint(Math.floor(frame.clientWidth));
  });
  bar.append(make("label", { class: "switch" }, slider, said));
  dark.addEventListener("change", () => repaint(Math.floor(frame.clientWidth)));
  onWidth(frame, repaint);
}

// A panel for each kind that the domain names; in it, problems grow along its two axes.
function paintCoverage(frame, found, until, width, shade) {
  const columns = width > 640 ? found.panels.length : 1, gap = 18, pad = 10, left = 30, top = 26, bottom = 34;
  const wide = (width - gap * (columns - 1)) / columns, high = Math.round(Math.max(230, Math.min(330, wide)));
  const rows = Math.ceil(found.panels.length / columns);
  const shown = new Set(found.cells.filter((c) => c[4] > 0 && c[2] <= until));
  const svg = canvas(rows * high, `${shown.size} of ${found.cells.length} kinds of problems are met up to step ${until}`);
  const most = Math.max(...found.cells.map((c) => c[4]), 1), largest = width > 500 ? 11 : 8;
  found.panels.forEach((name, panel) => {
    const cells = found.cells.filter((c) => c[5] === panel);
    const x0 = (panel % columns) * (wide + gap), y0 = Math.floor(panel / columns) * high;
    const x = (v) => x0 + left + pad + (wide - left - 2 * pad) * v, y = (v) => y0 + high - bottom - pad - (high - top - bottom - 2 * pad) * v;
    draw(svg, "text", { class: "facet", x: x0 + left, y: y0 + 14 }, `${name}: ${cells.filter((c) => shown.has(c)).length} of ${cells.length}`);
    draw(svg, "rect", { class: "plot", x: x0 + left, y: y0 + top, width: wide - left, height: high - top - bottom, rx: 6 });
    draw(svg, "text", { x: x0 + left, y: y0 + high - 18 }, found.axes.x[0]);
    draw(svg, "text", { x: x0 + wide, y: y0 + high - 18, "text-anchor": "end" }, found.axes.x[1]);
    draw(svg, "text", { x: x0 + (left + wide) / 2, y: y0 + high - 18, "text-anchor": "middle" }, found.labels[0] + " →");
    const side = draw(svg, "text", { x: 0, y: 0, "text-anchor": "middle", transform: `translate(${x0 + 12} ${y0 + (high - bottom + top) / 2}) rotate(-90)` }, found.labels[1] + " →");
    side.setAttribute("class", "side");
    for (const c of cells) if (!shown.has(c)) draw(svg, "circle", { class: "void", cx: x(c[0]), cy: y(c[1]), r: 2 });
    for (const c of cells.filter((one) => shown.has(one)).sort((a, b) => b[4] - a[4])) {
      const dot = draw(svg, "circle", { class: "cell", cx: x(c[0]), cy: y(c[1]), r: 3 + (largest - 3) * Math.sqrt(c[4] / most) });
      dot.style.fill = shade(c);
      describe(dot, { head: c[6], rows: [["", "first", `step ${c[2]}, ${c[3]}`], ["", "tasks", String(c[4])]],
        foot: c[7] ? make("pre", {}, c[7]) : "" });
    }
  });
  frame.replaceChildren(svg);
}
