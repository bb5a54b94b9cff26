"use strict";
// Figures as files: the drawing as SVG that needs no style sheet, its numbers as CSV.

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity",
  "font-size", "font-weight", "font-style", "text-anchor"];

function download(name, type, text) {
  const link = make("a", { download: name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") + "." + type });
  link.href = URL.createObjectURL(new Blob([text], { type: type === "svg" ? "image/svg+xml" : "text/csv" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// `rows` gives the table when it is asked for; a figure that is no drawing has no SVG.
function saveButtons(figure, title, rows) {
  const host = make("span", { class: "save" });
  const button = (words, save) => {
    const node = make("button", { type: "button", "aria-label": `Save ${title} as ${words}`, title: `Save as ${words}` }, words);
    node.addEventListener("click", save);
    host.append(node);
  };
  const name = () => document.title + " " + title;
  if (figure.querySelector(".frame")) button("SVG", () => download(name(), "svg", svgText(figure, title)));
  button("CSV", () => download(name(), "csv", csvText(rows())));
  figure.querySelector("figcaption").prepend(host);
}

// A program that reads tables must not take a name of a run for a formula.
function csvText(rows) {
  const cell = (value) => {
    const text = typeof value === "string" ? value.replace(/^[=+\-@\t\r]/, "'$&") : String(value ?? "");
    return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  };
  return rows.map((row) => row.map(cell).join(",") + "\r\n").join("");
}

function lineRows(chart) {
  const head = ["step"], tables = [];
  for (const line of chart.lines) {
    const wide = line.points.some((p) => p.length > 3);
    head.push(line.name, ...(wide ? [line.name + " low", line.name + " high"] : []));
    tables.push([wide ? 3 : 1, new Map(line.points.map((p) => [p[0], p.slice(1)]))]);
  }
  const steps = [...new Set(chart.lines.flatMap((l) => l.points.map((p) => p[0])))].sort((a, b) => a - b);
  return [head, ...steps.map((step) => [step, ...tables.flatMap(([width, at]) => Array.from({ length: width }, (_, i) => (at.get(step) || [])[i]))])];
}

// The drawing below its title and legend, every style written out.
function svgText(figure, title) {
  const drawn = figure.querySelector(".frame svg"), width = drawn.clientWidth, pad = 12;
  const styled = (node) => {
    const copy = node.cloneNode(false);
    if (node instanceof Text) return copy;
    const style = getComputedStyle(node);
    for (const name of ["class", "style", "tabindex", "data-name", "role"]) copy.removeAttribute(name);
    for (const name of STYLES) if (style.getPropertyValue(name)) copy.setAttribute(name, style.getPropertyValue(name));
    copy.append(...[...node.childNodes].filter((child) => !hidden(child)).map(styled));
    return copy;
  };
  const hidden = (node) => node instanceof Element && (node.matches(".hit") || node.getAttribute("visibility") === "hidden");
  const words = getComputedStyle(figure.querySelector("figcaption b")).color;
  const whole = draw(null, "svg", { xmlns: SVG, "font-family": "system-ui, sans-serif" });
  const back = draw(whole, "rect", { width: "100%", height: "100%", fill: getComputedStyle(figure).backgroundColor });
  draw(whole, "text", { x: pad, y: pad + 14, "font-size": 15, "font-weight": 600, fill: words }, title);
  let x = pad, y = pad + 34;
  for (const entry of figure.querySelectorAll(".legend > span")) {
    const mark = entry.firstElementChild, room = 44 + 7.2 * entry.textContent.length;
    if (x > pad && x + room > width + pad) { x = pad; y += 18; }
    const dash = mark.querySelector("line");
    const look = { x1: x, x2: x + 22, y1: y - 4, y2: y - 4, "stroke-width": 3, stroke: dash ? getComputedStyle(dash).stroke : getComputedStyle(mark).backgroundColor };
    if (dash) look["stroke-dasharray"] = dash.getAttribute("stroke-dasharray");
    draw(whole, "line", look);
    draw(whole, "text", { x: x + 27, y, "font-size": 12, fill: words }, entry.textContent);
    x += room;
  }
  const top = figure.querySelector(".legend > span") ? y + 8 : pad + 24;
  const place = draw(whole, "g", { transform: `translate(${pad} ${top})` });
  place.append(...styled(drawn).childNodes);
  const height = top + drawn.clientHeight + pad;
  for (const [name, value] of [["width", width + 2 * pad], ["height", height], ["viewBox", `0 0 ${width + 2 * pad} ${height}`]]) whole.setAttribute(name, value);
  back.removeAttribute("class");
  return new XMLSerializer().serializeToString(whole);
}
