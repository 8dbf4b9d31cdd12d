// Renders /openapi.json. Everything is built from text nodes: nothing in the document is ever taken for markup.
"use strict";

const element = (tag, attributes = {}, ...children) => {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
};

const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");

// inline turns `code` into code, and leaves everything else as it is.
const inline = (text) =>
  text.split(/`([^`]+)`/).map((part, i) => (i % 2 ? element("code", {}, part) : part));

const perLine = (text) => text.split("\n").map((l) => element("div", {}, ...inline(l)));

// prose renders the little Markdown that the descriptions use: headings, lists, paragraphs, code.
const prose = (text, level, contents) => {
  const out = [];
  for (const block of (text || "").split(/\n\s*\n/)) {
    const lines = block.split("\n");
    if (lines[0].startsWith("# ")) {
      const title = lines[0].slice(2);
      out.push(element("h" + level, { id: slug(title) }, title));
      if (contents) contents.append(element("li", {}, element("a", { href: "#" + slug(title) }, title)));
    } else if (lines.every((l) => l.startsWith("- "))) {
      out.push(element("ul", {}, ...lines.map((l) => element("li", {}, ...inline(l.slice(2))))));
    } else {
      for (const l of lines) out.push(element("p", {}, ...inline(l)));
    }
  }
  return out;
};

const table = (head, rows) =>
  element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": head.join(", ") },
    element("table", {},
      element("thead", {}, element("tr", {}, ...head.map((h) => element("th", { scope: "col" }, h)))),
      element("tbody", {}, ...rows.map((r) => element("tr", {}, ...r.map((c) => element("td", {}, ...[].concat(c))))))));

let spec;

const resolve = (schema) => {
  while (schema && schema.$ref) schema = spec.components.schemas[schema.$ref.split("/").pop()];
  return schema || {};
};

const typeOf = (schema) => {
  const name = schema && schema.$ref ? schema.$ref.split("/").pop() : null;
  const s = resolve(schema);
  const type = [].concat(s.type || "any").join(" or ");
  if (s.type === "array" || (Array.isArray(s.type) && s.type.includes("array"))) return "array of " + typeOf(s.items);
  return name || (s.format ? type + " (" + s.format + ")" : type);
};

const limits = (s) => {
  const says = [];
  if (s.enum) says.push("one of " + s.enum.map((v) => "`" + v + "`").join(", "));
  if (s.minLength !== undefined || s.maxLength !== undefined) says.push((s.minLength || 0) + " to " + s.maxLength + " characters");
  if (s.minimum !== undefined && s.maximum !== undefined) says.push("from " + s.minimum + " to " + s.maximum);
  if (s.maxProperties !== undefined) says.push("at most " + s.maxProperties + " members");
  if (s.default !== undefined) says.push("default " + s.default);
  return says.join("; ");
};

// members lists an object's members, nested ones with their path.
const members = (schema, prefix = "") => {
  const s = resolve(schema);
  return Object.entries(s.properties || {}).flatMap(([name, member]) => {
    const m = resolve(member);
    const about = [member.description || m.description, limits(m)].filter(Boolean).join("\n");
    const row = [element("code", {}, prefix + name), typeOf(member), (s.required || []).includes(name) ? "yes" : "no", perLine(about)];
    const inner = m.type === "array" ? resolve(m.items) : m;
    return [row, ...(inner.properties ? members(inner, prefix + name + (m.type === "array" ? "[]." : ".")) : [])];
  });
};

const example = (schema) => {
  const s = resolve(schema);
  if (s.properties) return Object.fromEntries(Object.entries(s.properties).map(([n, m]) => [n, example(m)]));
  if (s.examples) return s.examples[0];
  if (s.default !== undefined) return s.default;
  return s.type === "integer" || s.type === "number" ? 1 : s.type === "object" ? {} : "…";
};

const curl = (path, method, op, body) => {
  const lines = ["curl " + location.origin + path];
  if (op.security) lines.push("-H 'Authorization: Bearer hf_…'");
  for (const p of op.parameters || []) if (p.in === "header") lines.push("-H '" + p.name + ": " + (p.example || "…") + "'");
  if (body) lines.push("-H 'Content-Type: application/json'", "-d '" + JSON.stringify(example(body), null, 2) + "'");
  return element("pre", { tabindex: "0", "aria-label": "Example request" }, lines.join(" \\\n  "));
};

const operation = (path, method, op) => {
  const body = op.requestBody && op.requestBody.content["application/json"].schema;
  const section = element("section", { "aria-labelledby": op.operationId },
    element("h3", { id: op.operationId }, op.summary),
    element("p", {}, element("span", { class: "method " + method }, method.toUpperCase()), " ", element("code", {}, path)),
    ...prose(op.description, 4));
  section.append(curl(path, method, op, body));
  const parameters = op.parameters || [];
  if (parameters.length) {
    section.append(element("h4", {}, "Parameters"), table(["Name", "In", "Required", "What"],
      parameters.map((p) => [element("code", {}, p.name), p.in, p.required ? "yes" : "no", inline(p.description || "")])));
  }
  if (body) {
    section.append(element("h4", {}, "Body"), ...prose(op.requestBody.description, 4),
      table(["Member", "Type", "Required", "What"], members(body)));
  }
  section.append(element("h4", {}, "Answers"), table(["Status", "What", "Headers", "Body"],
    Object.entries(op.responses).map(([status, r]) => [status,
      perLine(r.description || ""),
      Object.keys(r.headers || {}).map((h) => element("div", {}, element("code", {}, h))),
      Object.values(r.content || {}).map((c) => c.schema && c.schema.$ref
        ? element("a", { href: "#schema-" + typeOf(c.schema) }, typeOf(c.schema)) : typeOf(c.schema))])));
  return section;
};

const render = () => {
  const main = document.getElementById("main");
  const contents = document.getElementById("contents");
  document.getElementById("title").textContent = spec.info.title + " API " + spec.info.version;
  document.title = spec.info.title + " API";
  document.getElementById("state").remove();
  main.append(element("section", {}, ...prose(spec.info.description, 2, contents)));
  const operations = Object.entries(spec.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, op]) => ({ path, method, op })));
  for (const tag of spec.tags || []) {
    main.append(element("h2", { id: slug(tag.name) }, tag.name), element("p", {}, tag.description || ""));
    contents.append(element("li", {}, element("a", { href: "#" + slug(tag.name) }, element("strong", {}, tag.name))));
    for (const o of operations.filter((o) => (o.op.tags || []).includes(tag.name))) {
      main.append(operation(o.path, o.method, o.op));
      contents.append(element("li", {}, element("a", { href: "#" + o.op.operationId }, o.op.summary)));
    }
  }
  main.append(element("h2", { id: "schemas" }, "Documents"));
  contents.append(element("li", {}, element("a", { href: "#schemas" }, element("strong", {}, "Documents"))));
  for (const [name, schema] of Object.entries(spec.components.schemas)) {
    main.append(element("section", {}, element("h3", { id: "schema-" + name }, name), table(["Member", "Type", "Always", "What"], members(schema))));
  }
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target) target.scrollIntoView();
};

fetch("/openapi.json")
  .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error("status " + answer.status))))
  .then((document) => { spec = document; render(); })
  .catch((error) => {
    const state = document.getElementById("state") || document.getElementById("main").appendChild(element("p", { role: "status" }));
    state.textContent = "The API's description cannot be read (" + error.message + "). Reload to try again.";
  });
