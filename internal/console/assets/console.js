// What the pages add where JavaScript runs. Everything works without it.
"use strict";

// A slash goes to the search, as on other sites, unless somebody is typing.
document.addEventListener("keydown", (event) => {
  const at = document.activeElement;
  const typing = at && (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName));
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || typing) return;
  const find = document.getElementById("find");
  if (find) {
    event.preventDefault();
    find.focus();
  }
});

// A page that nobody looks at asks for nothing, but for a run, which goes on.
document.addEventListener("htmx:before:request", (event) => {
  const source = event.detail?.ctx?.sourceElement;
  if (document.hidden && source?.id !== "go-on") event.preventDefault();
});

// A page that could not be refreshed says so.
const stale = (is) => {
  const note = document.getElementById("stale");
  if (note) note.hidden = !is;
};
document.addEventListener("htmx:error", () => stale(true));
document.addEventListener("htmx:after:request", (event) => {
  const status = event.detail?.ctx?.response?.status;
  if (status) stale(status >= 400);
});
