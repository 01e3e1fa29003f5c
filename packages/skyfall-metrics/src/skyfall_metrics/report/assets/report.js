"use strict";

// Tables: a heading's button sorts by its column, again the other way round; what is missing stays last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      table.tBodies[0].append(...sorted([...table.tBodies[0].rows], column, head.dataset.kind, down ? -1 : 1));
    });
  });
}

function sorted(rows, column, kind, sign) {
  const value = (row) => row.cells[column].dataset.value;
  const order = (a, b) =>
    kind === "number" ? a - b || a.localeCompare(b) : a.localeCompare(b, undefined, { numeric: true });
  return rows.sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === "" || b === "") return (a === "") - (b === "");
    return sign * order(a, b);
  });
}

// Figures: what is under the pointer, and where the curves of its panel are at that step.
const tip = document.getElementById("tip");
for (const panel of document.querySelectorAll("figure .panel")) {
  const curves = [...panel.querySelectorAll(".curve")].map((path) => ({
    name: path.dataset.name,
    points: [...path.getAttribute("d").matchAll(/(-?[\d.]+) (-?[\d.]+)/g)].map((m) => [+m[1], +m[2]]),
  }));
  panel.addEventListener("pointermove", (event) => show(event, panel, curves));
  panel.addEventListener("pointerdown", (event) => show(event, panel, curves));
  panel.addEventListener("pointerleave", () => { tip.hidden = true; });
}

function show(event, panel, curves) {
  const lines = [event.target.dataset.tip, ...readings(event, panel, curves)].filter(Boolean);
  tip.hidden = lines.length === 0;
  tip.textContent = lines.join("\n");
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 16;
  const fits = innerHeight >= below + tip.offsetHeight;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${fits ? below : event.clientY - tip.offsetHeight - 10}px`;
}

function readings(event, panel, curves) {
  if (curves.length === 0) return [];
  const [x, y] = [panel.dataset.x, panel.dataset.y].map((text) => text.split(" ").map(Number));
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(panel.getScreenCTM().inverse()).x;
  if (x[2] > at || at > x[3]) return [];
  const back = ([low, high, start, end], pixel) => low + ((pixel - start) / (end - start)) * (high - low);
  const nearest = (points) => points.reduce((best, p) => (Math.abs(p[0] - at) >= Math.abs(best[0] - at) ? best : p));
  const values = curves.filter((c) => c.points.length).map((c) => `${c.name} ≈ ${back(y, nearest(c.points)[1]).toPrecision(3)}`);
  return [`${panel.dataset.unit} ≈ ${Math.round(back(x, at)).toLocaleString("en")}`, ...values];
}
