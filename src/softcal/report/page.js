// Select the numbers of the reader's choice, which Python computed, and draw them.
"use strict";

const report = JSON.parse(document.getElementById("report-data").textContent);
const byId = (id) => document.getElementById(id);
const views = {};
const digits = (x, n = 4) => x.toFixed(n);
// The end of an interval, with more digits if it would be shown as 0 but is not (see verdict.py).
function limit(x, n = 3) {
  while (Math.abs(x) > 1e-6 && Math.abs(x) < 0.5 * 10 ** -n) n++;
  return x.toFixed(n);
}
const withSign = (x, shown) => (Number(shown) === 0 ? "" : x < 0 ? "−" : "+") + shown;
const signed = (x, n = 3) => withSign(x, Math.abs(x).toFixed(n));
const signedLimit = (x) => withSign(x, limit(Math.abs(x)));
const rowsOf = (n) => `${n.toLocaleString("en-US")} ${n === 1 ? "row" : "rows"}`;
const range = (low, high, n = 3) => `${limit(low, n)} to ${limit(high, n)}`;

// The metric and the labels of the choice: the metric is ECE if labels are 0 or 1.
const measureOf = (labels) => (labels === "hard" ? report.hardened : report.error);
const labelOf = (labels) => (labels === "hard" ? "hardened label" : "label");
const labelsOf = (labels) => (labels === "hard" ? "hardened labels" : "labels as they are");

function chosen() {
  const names = report.models.map((model) => model.name);
  return {
    bins: report.choices[Number(byId("bins").value)],
    labels: document.querySelector("input[name=labels]:checked")?.value ?? "soft",
    shown: names.filter((_, i) => byId(`model-${i}`).checked),
  };
}

// The numbers of a model for one number of bins, as page.py wrote them.
function numbers(model, labels, bins) {
  const choice = report.choices.indexOf(bins);
  const [smece, low, high, ...errors] = model[labels][choice];
  return { smece, low, high, columns: [...model.bins[choice], ...errors] };
}

function binRows(model, { labels, bins }, nModels, position) {
  const edge = (k) => (report.edges ? report.edges[k] : k / bins);
  const [places, ...columns] = numbers(model, labels, bins).columns;
  return places.map((place, i) => {
    const [rows, share, x, y, gap, gapLow, gapHigh] = columns.map((column) => column[i]);
    const [left, right] = [edge(place), edge(place + 1)];
    const width = (right - left) * 0.9;
    const start = left + (right - left) * 0.05 + (width * position) / nModels;
    return {
      model: model.name, left, right, rows, x, y, gap, gapLow, gapHigh, share,
      low: Math.max(x - gapHigh, 0), high: Math.min(x - gapLow, 1),
      range: `${Number(digits(left))} to ${Number(digits(right))}`,
      interval: `${signedLimit(gapLow)} to ${signedLimit(gapHigh)}`,
      part: gap * share, start, stop: start + width / nModels,
    };
  });
}

// Show the numbers of the choice, and return the rows of each chart.
function recompute() {
  const choice = chosen();
  byId("bins-shown").textContent = choice.bins;
  byId("choice").textContent = `${choice.bins} bins, ` +
    (choice.labels === "hard" ? `${report.hardened}.` : "labels as they are.");
  for (const place of document.querySelectorAll(".measure")) place.textContent = measureOf(choice.labels);
  for (const place of document.querySelectorAll(".label-kind")) place.textContent = labelOf(choice.labels);
  byId("bins").setAttribute("aria-valuetext", `${choice.bins} bins`);
  let rows = [], above = false;
  report.models.forEach((model, i) => {
    const found = numbers(model, choice.labels, choice.bins);
    byId(`smece-${i}`).textContent = digits(found.smece);
    byId(`interval-${i}`).textContent = range(found.low, found.high);
    above = above || found.smece > found.high + 1e-9;
    const position = choice.shown.indexOf(model.name);
    if (position >= 0) rows = rows.concat(binRows(model, choice, choice.shown.length, position));
  });
  const sweep = report.models.filter((m) => choice.shown.includes(m.name)).flatMap((model) =>
    report.choices.map((bins) => {
      const { smece, low, high } = numbers(model, choice.labels, bins);
      return { model: model.name, bins, interval: range(low, high, 4), smece, low, high };
    }));
  byId("above").hidden = !above;
  byId("bin-caption").textContent = `${choice.bins} bins, ${labelsOf(choice.labels)}`;
  for (const place of document.querySelectorAll(".soft-only")) place.hidden = choice.labels !== "hard";
  if (byId("no-groups")) byId("no-groups").hidden = choice.labels !== "hard";
  fillTable(rows);
  describe(rows, choice);
  return { bins: rows, sweep, chosen: [{ bins: choice.bins }] };
}

// The models of a panel that the reader chose to see.
function drawnOf(panel) {
  const { shown } = chosen();
  return panel.models.filter((model) => shown.includes(model.name));
}

// Show the numbers of the chosen threshold, as softcal.decision computed them.
function decide() {
  const panel = report.decision;
  if (!panel) return {};
  const k = Number(byId("threshold").value);
  const shown = `${Number((100 * panel.thresholds[k]).toFixed(4))}%`;
  byId("threshold-shown").textContent = shown;
  byId("threshold").setAttribute("aria-valuetext", shown);
  byId("decision-caption").textContent = `Threshold ${shown}, labels as they are`;
  panel.models.forEach((model, i) => {
    byId(`below-${i}`).textContent = model.sentences[k];
    [byId(`benefit-${i}`).textContent, byId(`benefit-interval-${i}`).textContent] = model.shown[k];
    byId(`cost-${i}`).textContent = model.cost[k];
  });
  return {
    decision: drawnOf(panel).flatMap((model) =>
      panel.thresholds.map((threshold, j) => ({ model: model.name, threshold,
        value: model.value[j], low: model.low[j], high: model.high[j] }))),
    everyone: panel.thresholds.map((threshold, j) => ({ threshold, value: panel.all[j] })),
    threshold: [{ threshold: panel.thresholds[k] }],
  };
}

// Show the rules for the chosen limit, as softcal.route computed them.
function accept() {
  const panel = report.route;
  if (!panel) return {};
  const k = Number(byId("disagreement").value);
  byId("disagreement-typed").textContent = panel.limits[k];
  byId("route-caption").textContent = `At most ${panel.names[k]} of people may disagree, labels as they are`;
  panel.models.forEach((model, i) => {
    const [name, ...cells] = byId("route-rows").rows[i].cells;
    name.lastElementChild.textContent = model.sentences[k];
    cells.forEach((cell, j) => { cell.textContent = model.shown[k][j]; });
  });
  const models = drawnOf(panel);
  return {
    route: models.flatMap(({ name, risk, low, high, share }) =>
      share.map((x, j) => ({ model: name, share: x, risk: risk[j], low: low[j], high: high[j] }))),
    rules: models.flatMap(({ name, rules }) => rules[k].map((rule) => ({ model: name, ...rule }))),
    limit: [{ risk: panel.limits[k] }],
  };
}

const dataOf = {
  sweep: ["sweep", "chosen"], decision: ["decision", "threshold"], route: ["route", "rules", "limit"],
};

function update() {
  const data = { ...recompute(), ...decide(), ...accept() };
  for (const [name, view] of Object.entries(views)) {
    for (const key of dataOf[name] ?? ["bins"]) view.data(key, data[key]);
    view.runAsync();
  }
}

function line(cells) {
  const row = document.createElement("tr");
  cells.forEach((text, column) => {
    const cell = document.createElement(column ? "td" : "th");
    if (!column) cell.scope = "row";
    cell.textContent = text;
    row.append(cell);
  });
  return row;
}

// A name breaks after _ - . and /, as elsewhere on the page.
function breakable(name) {
  return name.split(/(?<=[_\-./])(?=[\p{L}\p{N}_])/u).flatMap((part, i) =>
    i ? [document.createElement("wbr"), part] : [part]);
}

function fillTable(rows) {
  const lines = [];
  rows.forEach((row, i) => {
    if (row.model !== rows[i - 1]?.model) {
      const heading = line([""]);
      Object.assign(heading.firstChild, { colSpan: 6, scope: "rowgroup", className: "name" });
      heading.firstChild.append(...breakable(row.model));
      lines.push(heading);
    }
    lines.push(line([row.range, row.rows.toLocaleString("en-US"), digits(row.x), digits(row.y),
      signed(row.gap, 4), row.interval]));
  });
  byId("bin-rows").replaceChildren(...lines);
}

function describe(rows, choice) {
  const worst = rows.reduce((a, b) => (Math.abs(b.part) > Math.abs(a.part) ? b : a), rows[0]);
  const all = choice.shown.map((name) => {
    const i = report.models.findIndex((model) => model.name === name);
    return `${name}: ${measureOf(choice.labels)} ${byId(`smece-${i}`).textContent}, interval ` +
      byId(`interval-${i}`).textContent;
  }).join("; ");
  const most = worst ? ` The largest contribution: ${worst.model} at predictions ` +
    `${worst.range}, where the gap is ${signed(worst.gap)} over ${rowsOf(worst.rows)}.` : "";
  byId("diagram").setAttribute("aria-label", `Reliability diagram, ${choice.bins} bins. ${all}.${most}`);
  byId("worst").textContent = most.trim();
}

function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function asCsv(lines) {
  // Prevent a spreadsheet from running a cell as a formula.
  const cell = (value) => {
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : `${value}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return lines.map((line) => line.map(cell).join(",") + "\n").join("");
}

function binsAsCsv() {
  const choice = chosen(), hardened = choice.labels === "hard" ? "hardened_" : "";
  const lines = [["model", "low", "high", "count", "mean_prob", `mean_${hardened}label`,
    `${hardened}gap`, `${hardened}gap_low`, `${hardened}gap_high`, "labels"]];
  report.models.filter((model) => choice.shown.includes(model.name)).forEach((model) => {
    for (const row of binRows(model, choice, 1, 0)) {
      lines.push([row.model, row.left, row.right, row.rows, row.x, row.y, row.gap, row.gapLow,
        row.gapHigh, hardened ? "hardened" : "as they are"]);
    }
  });
  return asCsv(lines);
}

function segmentsAsCsv() {
  const lines = [["model", "by", "segment", "rows", "smece", "debiased", "low", "high", "mean_gap",
    "against_all_rows", "labels"]];
  for (const { by, models } of report.segments) {
    for (const { name, rows } of models) {
      for (const row of rows) {
        lines.push([name, by, row.value, row.n, row.smece, row.debiased, row.low, row.high,
          row.bias, row.against, "as they are"]);
      }
    }
  }
  return asCsv(lines);
}

function classesAsCsv() {
  const lines = [["model", "class", "share_of_labels", "smece", "debiased", "low", "high", "mean_gap",
    "labels"]];
  for (const { name, rows } of report.classes) {
    for (const row of rows) lines.push([name, ...row, "as they are"]);
  }
  return asCsv(lines);
}

// Save a chart as it is drawn, on white.
async function saveChart(name, kind) {
  const view = await views[name].background("#fff").runAsync();
  const hardened = chosen().labels === "hard" && !["decision", "route"].includes(name) ? "_hardened" : "";
  const link = document.createElement("a");
  link.href = await view.toImageURL(kind, kind === "png" ? 3 : 1);
  link.download = `${name}${hardened}.${kind}`;
  link.click();
  await view.background("transparent").runAsync();
}

// Draw all charts, with the metric in their titles.
async function draw() {
  const { labels } = chosen();
  const titled = (text) => text.replace("SMECE", measureOf(labels))
    .replace(/^mean label/, `mean ${labelOf(labels)}`);
  const specs = JSON.parse(byId("report-charts").textContent, (key, value) =>
    key !== "title" || !value ? value
      : Array.isArray(value) ? value.map(titled) : titled(value));
  const data = { ...recompute(), ...decide(), ...accept(), diagonal: [{ x: 0, y: 0, zero: 0 }, { x: 1, y: 1, zero: 0 }] };
  for (const [name, spec] of Object.entries(specs)) {
    spec.datasets = data;
    // In an inner element, because Vega replaces the role and label of its element.
    const place = byId(name).firstElementChild;
    views[name]?.finalize();
    const made = await vegaEmbed(place, spec, { actions: false, renderer: "svg", ast: true });
    views[name] = made.view;
  }
}

async function start() {
  let drawn = draw();
  await drawn;
  for (const input of document.querySelectorAll("#controls input, #threshold, #disagreement")) {
    // In sequence, so that the last choice is drawn last.
    input.addEventListener("input", () => {
      drawn = drawn.then(input.name === "labels" ? draw : update);
    });
  }
  const suffix = () => (chosen().labels === "hard" ? "_hardened" : "");
  for (const button of document.querySelectorAll(".save-chart button")) {
    button.addEventListener("click", () => saveChart(button.dataset.chart, button.dataset.kind));
  }
  byId("save-csv").addEventListener("click", () =>
    download(`reliability${suffix()}.csv`, "text/csv", binsAsCsv()));
  byId("save-json")?.addEventListener("click", () =>
    download("tables.softcal", "application/json", JSON.stringify(report.tables)));
  byId("save-segments")?.addEventListener("click", () =>
    download("segments.csv", "text/csv", segmentsAsCsv()));
  byId("save-classes")?.addEventListener("click", () =>
    download("classes.csv", "text/csv", classesAsCsv()));
  // Unfold everything for printing.
  const folded = () => document.querySelectorAll("details:not([open])");
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...folded()];
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of opened) each.open = false; });
  document.body.dataset.ready = "yes";
}

start();
