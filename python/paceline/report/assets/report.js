// Draws the report: the scatter plot (SVG), the time series (uPlot), sorting of tables. All data is in #paceline-data; names from
// records only ever become text nodes or attributes, never markup.
(function () {
  "use strict";

  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("paceline-data").textContent);
  const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
  const PRINT_WIDTH = 700;
  const SYNC = "paceline";
  const READOUT_MOST = 8;

  // What the reader has chosen.
  const state = { hidden: new Set(), choice: new Map(), zoom: null };
  // One { panel, choice, plot, entries, head } per panel drawn.
  let charts = [];

  // ---- Small things -----------------------------------------------------------------------------------------------------

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function shape(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function printing() {
    return root.dataset.theme === "print";
  }

  function colour(mark) {
    return darkScheme.matches && !printing() ? mark.dark : mark.light;
  }

  function variable(name) {
    return getComputedStyle(root).getPropertyValue(name).trim();
  }

  function widthOf(node) {
    return printing() ? PRINT_WIDTH : Math.max(280, Math.floor(node.getBoundingClientRect().width));
  }

  function swatch(mark, dashed = false) {
    const line = element("i", { className: dashed ? "line dashed" : "line" });
    line.style.color = colour(mark);
    return line;
  }

  // Decimals of a number among others: `step` is the distance at which two must look different.
  function decimalsFor(step) {
    return step > 0 ? Math.min(6, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))) : 0;
  }

  // Steps between ticks that people count in: 1, 2 and 5 times powers of ten.
  function roundSteps() {
    return Array.from({ length: 24 }, (_, i) => i - 8).flatMap((power) => [1, 2, 5].map((digit) => Number(`${digit}e${power}`)));
  }

  function grouped(value, decimals) {
    const [whole, part] = Math.abs(value).toFixed(decimals).split(".");
    const spaced = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u2009") : whole;
    return (value < 0 ? "\u2212" : "") + spaced + (part ? "." + part : "");
  }

  function readable(value) {
    if (value === null || value === undefined) return "–";
    return grouped(value, Number.isInteger(value) ? 0 : decimalsFor(Math.abs(value) / 100));
  }

  // Round steps (1, 2, 5 times a power of ten) that cut [low, high] into about `count`.
  function linearTicks(low, high, count) {
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i++) ticks.push(i * step);
    return { ticks, label: (value) => grouped(value, decimalsFor(step)) };
  }

  function logTicks(low, high) {
    const ticks = [];
    const factors = high / low > 1000 ? [1] : [1, 2, 5];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const factor of factors) {
        const tick = factor * 10 ** power;
        if (tick >= low && tick <= high) ticks.push(tick);
      }
    }
    return { ticks, label: (value) => grouped(value, decimalsFor(value)) };
  }

  // ---- Markers ----------------------------------------------------------------------------------------------------------

  function polygon(sides, radius, turn) {
    const corners = [];
    for (let i = 0; i < sides; i++) {
      const angle = turn + (2 * Math.PI * i) / sides;
      corners.push(`${(radius * Math.sin(angle)).toFixed(2)} ${(-radius * Math.cos(angle)).toFixed(2)}`);
    }
    return `M${corners.join("L")}Z`;
  }

  // Path around the origin; areas are about equal, so that no controller looks more important.
  function markerPath(marker, radius) {
    const r = radius;
    switch (marker) {
      case "square":
        return polygon(4, 1.25 * r, Math.PI / 4);
      case "diamond":
        return polygon(4, 1.3 * r, 0);
      case "triangle-up":
        return polygon(3, 1.4 * r, 0);
      case "triangle-down":
        return polygon(3, 1.4 * r, Math.PI);
      case "pentagon":
        return polygon(5, 1.15 * r, 0);
      default:
        return `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`;
    }
  }

  function drawSwatches() {
    for (const svg of document.querySelectorAll("svg.swatch")) {
      svg.replaceChildren(shape("path", { d: markerPath(svg.dataset.marker, 5.2), fill: colour(svg.dataset) }));
    }
  }

  // ---- Throughput against delay -----------------------------------------------------------------------------------------

  function axisRange(values) {
    const low = Math.min(...values);
    const high = Math.max(...values);
    // At least a tenth of the value on either side of a lone point or a close group: noise should not look like a gap.
    const pad = Math.max(0.12 * (high - low), 0.5 * (0.2 * Math.abs(high) - (high - low))) || 1;
    return [low - pad < 0.3 * high ? 0 : low - pad, high + pad];
  }

  // Delay axis: larger to the left, so that up and right is better; logarithmic when the delays span a decade.
  function delayScale(values, left, right) {
    const low = Math.min(...values);
    const high = Math.max(...values);
    if (low > 0 && high / low > 8) {
      const range = [low / 1.35, high * 1.35];
      const span = Math.log(range[1] / range[0]);
      return { ...logTicks(...range), at: (value) => left + (Math.log(range[1] / value) / span) * (right - left), log: true };
    }
    const range = axisRange(values);
    const span = range[1] - range[0];
    return { ...linearTicks(...range, (right - left) / 90), at: (value) => left + ((range[1] - value) / span) * (right - left) };
  }

  function overlaps(a, b) {
    return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
  }

  // Where a label of this width fits best beside the point: the first side that hits nothing, else the one that hits least.
  function placeLabel(x, y, width, taken, box) {
    const h = 16;
    const sides = [
      { x: x + 12, y: y - h / 2, anchor: "start" },
      { x: x - 12 - width, y: y - h / 2, anchor: "end" },
      { x: x - width / 2, y: y - 12 - h, anchor: "middle" },
      { x: x - width / 2, y: y + 12, anchor: "middle" },
    ];
    for (const away of [1, 2, 3, 4]) {
      sides.push({ x: x - width / 2, y: y - 12 - h - away * h, anchor: "middle" });
      sides.push({ x: x - width / 2, y: y + 12 + away * h, anchor: "middle" });
    }
    let best = null;
    for (const side of sides) {
      const area = { x: side.x, y: side.y, w: width, h };
      const outside = area.x < box.left || area.x + width > box.right || area.y < box.top || area.y + h > box.bottom;
      const hits = taken.filter((other) => overlaps(area, other)).length + (outside ? 10 : 0);
      if (best === null || hits < best.hits) best = { ...side, area, hits };
    }
    taken.push(best.area);
    const shift = best.anchor === "start" ? 0 : best.anchor === "end" ? width : width / 2;
    return { x: best.x + shift, y: best.y + 12, anchor: best.anchor };
  }

  function drawAxes(svg, box, scaleX, scaleY, titles) {
    const text = { fill: variable("--ink"), "font-size": 12 };
    const grid = { stroke: variable("--grid"), "stroke-width": 1 };
    for (const tick of scaleX.ticks) {
      const x = scaleX.at(tick);
      svg.append(shape("line", { x1: x, x2: x, y1: box.top, y2: box.bottom, ...grid }));
      svg.append(shape("text", { x, y: box.bottom + 17, "text-anchor": "middle", ...text }, scaleX.label(tick)));
    }
    for (const tick of scaleY.ticks) {
      const y = scaleY.at(tick);
      svg.append(shape("line", { x1: box.left, x2: box.right, y1: y, y2: y, ...grid }));
      svg.append(shape("text", { x: box.left - 7, y: y + 4, "text-anchor": "end", ...text }, scaleY.label(tick)));
    }
    const frame = { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, fill: "none" };
    svg.append(shape("rect", { ...frame, stroke: variable("--rule") }));
    const middle = (box.left + box.right) / 2;
    const title = { "text-anchor": "middle", fill: variable("--ink"), "font-size": 13 };
    svg.append(shape("text", { x: middle, y: box.bottom + 38, ...title }, titles.x));
    const height = (box.top + box.bottom) / 2;
    svg.append(shape("text", { x: 14, y: height, transform: `rotate(-90 14 ${height})`, ...title }, titles.y));
    const hint = { x: box.right - 8, y: box.top + 17, "text-anchor": "end", fill: variable("--soft"), "font-size": 12 };
    svg.append(shape("text", { ...hint, "font-style": "italic" }, "better ↗"));
  }

  function drawPoint(svg, point, x, y) {
    const radius = point.mean ? 6.5 : 3.6;
    const path = { d: markerPath(point.marker, radius), transform: `translate(${x} ${y})`, "stroke-width": 1.2 };
    path.fill = point.mean ? colour(point) : "none";
    path.stroke = point.mean ? variable("--paper") : colour(point);
    const drawn = shape("path", path);
    const unit = data.scatter.unit;
    const delays = data.scatter.delays.filter((delay) => delay.key in point.x);
    const lines = delays.map((delay) => `${delay.title}: ${readable(point.x[delay.key])} ms`);
    drawn.append(shape("title", {}, [point.name, `throughput: ${readable(point.y)} ${unit}`, ...lines].join("\n")));
    svg.append(drawn);
  }

  function drawScatter() {
    const holder = document.getElementById("scatter");
    const key = document.getElementById("scatter-delay").value;
    const delay = data.scatter.delays.find((one) => one.key === key);
    const points = data.scatter.points.filter((point) => key in point.x);
    if (!delay || points.length === 0) {
      document.getElementById("scatter-section").hidden = true;
      return;
    }
    const width = widthOf(holder);
    const height = Math.round(Math.min(430, Math.max(300, width * 0.55)));
    const box = { left: 62, right: width - 12, top: 8, bottom: height - 48 };
    const scaleX = delayScale(points.map((point) => point.x[key]), box.left, box.right);
    const rangeY = axisRange(points.map((point) => point.y));
    const upward = (value) => box.bottom - ((value - rangeY[0]) / (rangeY[1] - rangeY[0])) * (box.bottom - box.top);
    const scaleY = { ...linearTicks(...rangeY, 6), at: upward };

    const svg = shape("svg", { width, height, role: "img", "aria-label": `Throughput against ${delay.title}` });
    holder.replaceChildren(svg);
    const titles = { x: `${delay.title} (ms${scaleX.log ? ", logarithmic" : ""})`, y: `Throughput (${data.scatter.unit})` };
    drawAxes(svg, box, scaleX, scaleY, titles);
    const placed = points.map((point) => ({ point, x: scaleX.at(point.x[key]), y: scaleY.at(point.y) }));
    placed.sort((a, b) => a.point.mean - b.point.mean);
    for (const { point, x, y } of placed) drawPoint(svg, point, x, y);

    const taken = placed.map(({ point, x, y }) => {
      const r = point.mean ? 8 : 4;
      return { x: x - r, y: y - r, w: 2 * r, h: 2 * r };
    });
    taken.push({ x: box.right - 70, y: box.top, w: 70, h: 24 });
    for (const { point, x, y } of placed.filter((one) => one.point.mean)) {
      const name = point.name.length > 36 ? point.name.slice(0, 35) + "…" : point.name;
      const label = shape("text", { "font-size": 13, fill: colour(point), "font-weight": 600 }, name);
      svg.append(label);
      const spot = placeLabel(x, y, label.getComputedTextLength(), taken, box);
      label.setAttribute("x", spot.x);
      label.setAttribute("y", spot.y);
      label.setAttribute("text-anchor", spot.anchor);
    }
    const several = points.some((point) => !point.mean);
    document.getElementById("scatter-note").textContent = several
      ? "Small markers: one per flow and run. Large markers: mean over the controller's flows and seeds."
      : "One marker per flow.";
  }

  function setUpScatter() {
    const select = document.getElementById("scatter-delay");
    for (const delay of data.scatter.delays) select.append(element("option", { value: delay.key, textContent: delay.title }));
    select.addEventListener("change", drawScatter);
  }

  // ---- Time series: what is shown ---------------------------------------------------------------------------------------

  function flowsOf(run) {
    return data.lines.flatMap((line, index) => (line.kind === "flow" && line.run === run ? [index] : []));
  }

  function runVisible(run) {
    const flows = flowsOf(run);
    return flows.length === 0 || flows.some((index) => !state.hidden.has(index));
  }

  function entryVisible(entry) {
    if (entry.runs) return entry.runs.some(runVisible);
    const line = data.lines[entry.line];
    return line.kind === "flow" ? !state.hidden.has(entry.line) : runVisible(line.run);
  }

  function applyVisibility() {
    for (const chart of charts) {
      chart.entries.forEach((entry, index) => {
        const show = entryVisible(entry);
        if (chart.plot.series[index + 1].show !== show) chart.plot.setSeries(index + 1, { show });
      });
    }
    for (const button of document.querySelectorAll("#legend button[data-lines]")) {
      const on = JSON.parse(button.dataset.lines).some((index) => !state.hidden.has(index));
      button.setAttribute("aria-pressed", String(on));
    }
  }

  function toggle(lines) {
    const anyShown = lines.some((index) => !state.hidden.has(index));
    for (const index of lines) anyShown ? state.hidden.add(index) : state.hidden.delete(index);
    applyVisibility();
  }

  function showRun(value) {
    state.hidden.clear();
    data.lines.forEach((line, index) => {
      if (line.kind === "flow" && value !== "all" && line.run !== Number(value)) state.hidden.add(index);
    });
    applyVisibility();
  }

  function legendButton(text, lines, mark) {
    const button = element("button", { type: "button", title: text }, ...(mark ? [swatch(mark)] : []), text);
    button.dataset.lines = JSON.stringify(lines);
    button.addEventListener("click", () => toggle(lines));
    return button;
  }

  function drawLegend() {
    const legend = document.getElementById("legend");
    const chosen = legend.querySelector("select")?.value;
    legend.replaceChildren();
    if (data.runs.length > 1) {
      const select = element("select", {}, element("option", { value: "all", textContent: "all runs" }));
      data.runs.forEach((run, index) => select.append(element("option", { value: String(index), textContent: run.label })));
      select.value = chosen ?? firstChoice();
      select.addEventListener("change", () => showRun(select.value));
      legend.append(element("label", {}, "Show ", select));
    }
    const reset = element("button", { type: "button", className: "reset", textContent: "Reset zoom", disabled: !state.zoom });
    reset.addEventListener("click", () => zoomTo(null));
    legend.append(reset);
    data.runs.forEach((run, index) => {
      const flows = flowsOf(index);
      const group = element("span", { className: "run" });
      if (data.runs.length > 1 && flows.length > 1) group.append(legendButton(run.label, flows));
      for (const flow of flows) {
        const line = data.lines[flow];
        group.append(legendButton(data.runs.length > 1 && flows.length === 1 ? run.label : line.text, [flow], line));
      }
      legend.append(group);
    });
    if (data.capacities.length) legend.append(element("span", {}, element("i", { className: "line area" }), "link capacity"));
  }

  // Everything while it is readable, else the first run.
  function firstChoice() {
    return data.lines.filter((line) => line.kind === "flow").length <= 8 ? "all" : "0";
  }

  // ---- Time series: drawing ---------------------------------------------------------------------------------------------

  function fullRange() {
    return { min: 0, max: Math.max(...data.runs.map((run) => run.end)) || 1 };
  }

  function zoomTo(range) {
    state.zoom = range;
    const shown = range ?? fullRange();
    for (const chart of charts) chart.plot.setScale("x", shown);
    document.querySelector("#legend .reset").disabled = range === null;
  }

  function zoomToSelection(plot) {
    const { left, width } = plot.select;
    if (width < 3) return;
    const range = { min: plot.posToVal(left, "x"), max: plot.posToVal(left + width, "x") };
    for (const chart of charts) chart.plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    zoomTo(range);
  }

  // Lines and areas of a panel in drawing order.
  function entriesOf(panel, choice) {
    const entries = [];
    if (panel.capacity) {
      for (const capacity of data.capacities) entries.push({ runs: capacity.runs, time: capacity.time, values: capacity.values });
    }
    data.lines.forEach((line, index) => {
      if (line.kind !== choice.kind) return;
      choice.columns.forEach((column, second) => {
        if (line.columns[column]) entries.push({ line: index, time: line.time, values: line.columns[column], second: second > 0 });
      });
    });
    return entries;
  }

  // uPlot wants one time axis: entries that share theirs go together, different ones are joined.
  function tableOf(entries, factor) {
    const tables = new Map();
    for (const entry of entries) {
      if (!tables.has(entry.time)) tables.set(entry.time, [data.times[entry.time]]);
      const table = tables.get(entry.time);
      entry.slot = { time: entry.time, row: table.length };
      table.push(entry.values.map((value) => (value === null ? null : value * factor)));
    }
    const joined = tables.size > 1 ? uPlot.join([...tables.values()]) : [...tables.values()][0];
    const offsets = new Map();
    let offset = 0;
    for (const [time, table] of tables) {
      offsets.set(time, offset);
      offset += table.length - 1;
    }
    return [joined[0], ...entries.map((entry) => joined[offsets.get(entry.slot.time) + entry.slot.row])];
  }

  function seriesOf(entry) {
    const show = entryVisible(entry);
    if (entry.runs) {
      const area = variable("--area");
      return { show, fill: area, stroke: area, width: 0, paths: uPlot.paths.stepped({ align: -1 }), points: { show: false } };
    }
    const stroke = colour(data.lines[entry.line]);
    return { show, stroke, width: entry.second ? 1 : 1.5, dash: entry.second ? [4, 3] : undefined, points: { show: false } };
  }

  function rangeOf(zero) {
    return (plot, low, high) => {
      if (low === null || high === null) return [0, 1];
      if (zero && low >= 0) return [0, high > 0 ? high * 1.06 : 1];
      const pad = 0.08 * (high - low) || 0.05 * Math.abs(high) || 1;
      return [low >= 0 && low < pad ? 0 : low - pad, high + pad];
    };
  }

  function axisOf(label, space, more) {
    return {
      stroke: variable("--ink"),
      font: "12px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, 'Liberation Sans', sans-serif",
      labelFont: "13px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, 'Liberation Sans', sans-serif",
      label,
      labelSize: 20,
      labelGap: 0,
      space,
      incrs: roundSteps(),
      gap: 4,
      grid: { stroke: variable("--grid"), width: 1 },
      ticks: { stroke: variable("--rule"), width: 1, size: 5 },
      values: (plot, splits) => splits.map((value) => grouped(value, decimalsFor((splits[1] ?? splits[0]) - splits[0]))),
      ...more,
    };
  }

  function showReadout(chart) {
    const { plot, entries, readout, choice } = chart;
    const index = plot.cursor.idx;
    const visible = entries.map((entry, i) => ({ entry, row: i + 1 })).filter(({ entry }) => entryVisible(entry));
    if (index === null || index === undefined || visible.length > READOUT_MOST) {
      readout.replaceChildren();
      return;
    }
    const parts = visible.map(({ entry, row }) => {
      let at = index;
      while (at > 0 && plot.data[row][at] === undefined) at -= 1; // no sample of this line here: the one before
      const mark = entry.runs ? element("i", { className: "line area" }) : swatch(data.lines[entry.line], entry.second);
      return element("span", {}, mark, readable(plot.data[row][at]));
    });
    const time = grouped(plot.data[0][index], decimalsFor((plot.scales.x.max - plot.scales.x.min) / 500));
    readout.replaceChildren(`${time} s`, ...parts, ` ${choice.unit}`);
  }

  function drawPanel(panel, holder, last) {
    const choice = panel.choices[state.choice.get(panel.id) ?? 0];
    const entries = entriesOf(panel, choice);
    const readout = element("div", { className: "readout" });
    const chart = { panel, choice, entries, readout };
    const area = element("div");
    holder.replaceChildren(element("div", { className: "panel-head" }, panelTitle(panel, choice, holder, last), readout), area);
    const scale = state.zoom ?? fullRange();
    const options = {
      width: widthOf(holder),
      height: (panel.capacity ? 216 : 178) + (last ? 24 : 0),
      padding: [8, 10, 0, 0],
      legend: { show: false },
      scales: { x: { time: false, ...scale }, y: { range: rangeOf(choice.zero) } },
      series: [{}, ...entries.map(seriesOf)],
      axes: [
        axisOf(last ? "Time (s)" : null, 70, { size: 26 }),
        axisOf(choice.unit || " ", 26, { size: 58 }),
      ],
      cursor: {
        sync: { key: SYNC, scales: ["x", null] },
        y: false,
        drag: { x: true, y: false, setScale: false },
        points: { size: 6 },
        bind: { dblclick: () => () => zoomTo(null) },
      },
      hooks: { setSelect: [zoomToSelection], setCursor: [() => showReadout(chart)] },
    };
    chart.plot = new uPlot(options, tableOf(entries, choice.factor), area);
    return chart;
  }

  function panelTitle(panel, choice, holder, last) {
    if (panel.choices.length === 1) return element("b", { textContent: choice.title });
    const select = element("select", { title: "Quantity shown" });
    panel.choices.forEach((one, index) => select.append(element("option", { value: String(index), textContent: one.title })));
    select.value = String(state.choice.get(panel.id) ?? 0);
    select.addEventListener("change", () => {
      state.choice.set(panel.id, Number(select.value));
      const index = charts.findIndex((chart) => chart.panel === panel);
      charts[index].plot.destroy();
      charts[index] = drawPanel(panel, holder, last);
    });
    return select;
  }

  function drawPanels() {
    const area = document.getElementById("panels");
    for (const chart of charts) chart.plot.destroy();
    area.replaceChildren();
    charts = data.panels.map((panel, index) => {
      const holder = element("div", { className: "panel", id: `panel-${panel.id}` });
      area.append(holder);
      return drawPanel(panel, holder, index === data.panels.length - 1);
    });
    if (charts.length === 0) document.getElementById("series-section").hidden = true;
  }

  // ---- Tables -----------------------------------------------------------------------------------------------------------

  function sortBy(table, column) {
    const head = table.tHead.rows[0].cells[column];
    const numeric = head.classList.contains("number");
    const current = head.getAttribute("aria-sort");
    const order = current === "descending" ? "ascending" : current === "ascending" || numeric ? "descending" : "ascending";
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      if (!numeric) return sign * a.cells[column].textContent.localeCompare(b.cells[column].textContent);
      const [x, y] = [a, b].map((row) => row.cells[column].dataset.sort);
      // What was not measured stays at the end, whichever way the rest is sorted.
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
      return sign * (Number(x) - Number(y));
    });
    table.tBodies[0].append(...rows);
  }

  function setUpTables() {
    for (const table of document.querySelectorAll("table.sortable")) {
      [...table.tHead.rows[0].cells].forEach((cell, column) => {
        cell.querySelector("button").addEventListener("click", () => sortBy(table, column));
      });
    }
  }

  // ---- The page ---------------------------------------------------------------------------------------------------------

  function drawAll() {
    drawSwatches();
    drawLegend();
    drawPanels();
    drawScatter();
    applyVisibility();
  }

  function resize() {
    if (printing()) return;
    for (const chart of charts) {
      const width = widthOf(chart.plot.root.parentNode);
      if (width !== chart.plot.width) chart.plot.setSize({ width, height: chart.plot.height });
    }
    drawScatter();
  }

  setUpTables();
  setUpScatter();
  if (firstChoice() === "0") showRun("0");
  drawAll();
  window.addEventListener("resize", resize);
  darkScheme.addEventListener("change", drawAll);
  window.addEventListener("beforeprint", () => {
    root.dataset.theme = "print";
    drawAll();
  });
  window.addEventListener("afterprint", () => {
    delete root.dataset.theme;
    drawAll();
  });
  // uPlot paints in a microtask; a timer runs after it.
  setTimeout(() => {
    root.dataset.charts = String(charts.length);
    root.dataset.ready = "true";
  }, 0);
})();
