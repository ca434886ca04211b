"use strict";
// Everything from a run is put on the page as text, never as markup.
const live = document.body.dataset.live === "yes";
const read = (id) => JSON.parse(document.getElementById(id).textContent);
let rows = read("rows");
const details = read("details");
let order = { key: "name", down: false };
const search = document.getElementById("search");
const verdict = document.getElementById("verdict");
const panel = document.getElementById("panel");

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
const number = (value, digits) => (value === null || value === undefined ? "" : value.toFixed(digits));
const tone = (row) => (row.verdict === "passed" ? "passed" : row.graded ? "graded" : "ungraded");

function line(row) {
  const open = make("button", { type: "button" }, row.name);
  const cells = [
    make("td", {}, open),
    make("td", { class: tone(row) }, row.verdict),
    make("td", { class: "number" }, row.reward === null ? "" : String(+row.reward.toFixed(3))),
    make("td", {}, row.category), make("td", {}, row.difficulty),
    make("td", { class: "number" }, String(row.turns)),
    make("td", { class: "number" }, number(row.seconds, 1)),
    make("td", { class: "number" }, row.cost === null ? "" : "$" + row.cost.toFixed(3)),
    make("td", {}, row.note),
  ];
  const found = make("tr", {}, ...cells);
  found.addEventListener("click", () => show(row.name));
  return found;
}

function draw() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = rows.filter((row) => {
    const text = [row.name, row.verdict, row.category, row.difficulty, row.note].join(" ").toLowerCase();
    return (!verdict.value || row.verdict === verdict.value) && words.every((word) => text.includes(word));
  });
  const { key, down } = order;
  shown.sort((a, b) => {
    const [x, y] = [a[key] ?? -1, b[key] ?? -1];
    const by = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
    return down ? -by : by;
  });
  document.querySelector("#trials tbody").replaceChildren(...shown.map(line));
  document.getElementById("count").textContent = `${shown.length} of ${rows.length} trials`;
}

function fillVerdicts() {
  const chosen = verdict.value;
  const names = [...new Set(rows.map((row) => row.verdict))].sort();
  const options = names.map((name) => make("option", { value: name }, name));
  verdict.replaceChildren(make("option", { value: "" }, "every verdict"), ...options);
  verdict.value = names.includes(chosen) ? chosen : "";
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

async function detail(name) {
  if (!live) return unpack(details[name]);
  const answer = await fetch("trial.json?name=" + encodeURIComponent(name));
  return answer.json();
}

async function show(name) {
  const place = document.getElementById("detail");
  place.replaceChildren(make("p", {}, "Loading…"));
  if (!panel.open) panel.showModal();
  history.replaceState(null, "", "#" + encodeURIComponent(name));
  place.replaceChildren(...render(name, await detail(name)));
}

function render(name, found) {
  const record = found.record;
  const facts = [record.verdict, record.reward === null ? "not graded" : "reward " + record.reward, record.cause,
    `${record.turns} turns`, `${record.seconds} s`, record.stop_reason].filter(Boolean).join(" · ");
  return [
    make("h2", {}, name), make("p", { class: tone(record) }, facts),
    record.message ? make("pre", {}, record.message) : null,
    ...series(record.info?.series), ...tests(record.tests),
    make("h3", {}, "Trajectory"), ...(found.steps.length ? found.steps.map(step) : [make("p", {}, "There is none.")]),
    found.left_out ? make("p", {}, `${found.left_out} more steps are in trajectory.json.`) : null,
    make("h3", {}, "Verifier"),
    ...Object.entries(found.files).map(([file, text]) =>
      make("details", {}, make("summary", {}, file), make("pre", {}, text))),
    make("details", {}, make("summary", {}, "Record"), make("pre", {}, JSON.stringify(record, null, 2))),
  ].filter(Boolean);
}

function tests(list) {
  if (!list.length) return [];
  const lines = list.map((test) => make("tr", {}, make("td", {}, test.name),
    make("td", { class: test.status === "passed" ? "passed" : "graded" }, test.status), make("td", {}, test.message)));
  return [make("h3", {}, "Tests"), make("table", {}, make("tbody", {}, ...lines))];
}

function step(found) {
  const tokens = found.tokens ? ` · ${found.tokens[0] ?? 0} tokens in, ${found.tokens[1] ?? 0} out` : "";
  const seconds = found.seconds === undefined ? "" : ` · ${found.seconds} s`;
  return make("div", { class: "step " + found.source },
    make("div", { class: "who" }, found.source + tokens + seconds),
    found.reasoning ? make("details", {}, make("summary", {}, "reasoning"), make("div", { class: "reasoning" }, found.reasoning)) : null,
    found.message ? make("div", { class: "said" }, found.message) : null,
    ...(found.calls ?? []).map((call) => make("div", {}, make("div", { class: "who" }, "call " + call.name),
      ...Object.entries(call.arguments).map(([key, value]) => make("pre", {}, key ? key + ": " + value : value)))),
    ...(found.results ?? []).map((text) => make("details", { open: "" }, make("summary", { class: "who" }, "result"), make("pre", {}, text))));
}

function series(all) {
  // A record's info may hold series: {name: [[x, y], …]}; each becomes a line.
  return Object.entries(all ?? {}).filter(([, points]) => points.length > 1).flatMap(([name, points]) => {
    const xs = points.map((point) => point[0]), ys = points.map((point) => point[1]);
    const span = (values) => [Math.min(...values), Math.max(...values)];
    const [[x0, x1], [y0, y1]] = [span(xs), span(ys)];
    const at = (value, low, high, size) => (high > low ? ((value - low) / (high - low)) * size : size / 2);
    const path = points.map(([x, y]) => `${at(x, x0, x1, 440).toFixed(1)},${(120 - at(y, y0, y1, 120)).toFixed(1)}`).join(" ");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "-10 -10 460 150"); svg.setAttribute("class", "plot");
    const curve = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    for (const [key, value] of [["points", path], ["class", "whisker"], ["fill", "none"]]) curve.setAttribute(key, value);
    svg.append(curve);
    return [make("h3", {}, name), svg, make("p", { class: "who" }, `from ${ys[0]} to ${ys[ys.length - 1]}; lowest ${y0}, highest ${y1}`)];
  });
}

async function refresh() {
  try {
    const state = await (await fetch("state.json")).json();
    rows = state.rows;
    document.getElementById("summary").innerHTML = state.summary; // made and escaped by our own server
    fillVerdicts();
    draw();
  } catch { document.getElementById("count").textContent = "the viewer has stopped"; }
}

for (const head of document.querySelectorAll("#trials thead th")) {
  head.addEventListener("click", () => {
    const key = head.dataset.key;
    order = { key, down: order.key === key && !order.down };
    for (const other of document.querySelectorAll("#trials thead th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    draw();
  });
}
search.addEventListener("input", draw);
verdict.addEventListener("change", draw);
document.getElementById("close").addEventListener("click", () => panel.close());
panel.addEventListener("close", () => history.replaceState(null, "", location.pathname));
fillVerdicts();
draw();
const asked = decodeURIComponent(location.hash.slice(1));
if (rows.some((row) => row.name === asked)) show(asked);
if (live) setInterval(refresh, 2000);
