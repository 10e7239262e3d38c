// What the pages do by themselves. Everything works without it, but for what is updated as it happens.
"use strict";
(() => {
  const body = document.body;
  const byId = (id) => document.getElementById(id);

  // Times are shown as local ones; the title keeps UTC.
  const two = (n) => String(n).padStart(2, "0");
  const showTime = (e) => {
    const t = new Date(e.dateTime), clock = `${two(t.getHours())}:${two(t.getMinutes())}`;
    e.textContent = e.className === "clock" ? clock : `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${clock}:${two(t.getSeconds())}`;
  };
  const showTimes = () => document.querySelectorAll("time").forEach(showTime);
  showTimes();
  body.addEventListener("htmx:afterSettle", showTimes);

  // How many calls wait for a decision of this person, in the title and beside the link; a notification when one more does.
  let waiting = Number(byId("waiting-count")?.textContent || 0);
  const title = document.title.replace(/^\(\d+\) /, "");
  let shown = byId("open")?.dataset.all; // how many that wait the page of approvals shows
  const showWaiting = ({ decide: n, see }) => {
    document.title = (n ? `(${n}) ` : "") + title;
    byId("waiting-count").textContent = n;
    byId("waiting").hidden = n === 0;
    if (n > waiting && window.Notification?.permission === "granted") {
      const told = new Notification("A call waits for your decision", { body: `${n} in all`, tag: "toolctl-approvals" });
      told.onclick = () => { window.focus(); location.assign(`${body.dataset.root}approvals`); };
    }
    if (shown !== undefined && Number(shown) !== see && !document.querySelector("form:focus-within")) location.reload();
    if (shown !== undefined) shown = see;
    waiting = n;
  };
  const notify = byId("notify");
  if (notify && window.Notification && Notification.permission === "default") {
    notify.hidden = false;
    notify.addEventListener("click", async () => { await Notification.requestPermission(); notify.hidden = true; });
  }

  // Calls as they happen.
  const rows = byId("rows");
  const cell = (row, text, className) => {
    const td = row.insertCell();
    if (className) {
      const span = document.createElement("span");
      span.className = className;
      span.textContent = text;
      td.append(span);
    } else td.textContent = text;
    return td;
  };
  const showCall = (c) => {
    const row = document.createElement("tr");
    row.className = "fresh";
    const link = document.createElement("a");
    link.href = `${body.dataset.root}activity/${encodeURIComponent(c.id)}`;
    const time = document.createElement("time");
    time.dateTime = c.time;
    time.title = c.time.slice(0, 19).replace("T", " ") + " UTC";
    showTime(time);
    link.append(time);
    row.insertCell().append(link);
    cell(row, visible(c.tool));
    cell(row, visible(c.principal));
    cell(row, c.status, "decision " + c.status).append(c.error ? " " + c.error : "");
    cell(row, c.decision);
    cell(row, c.duration);
    cell(row, visible(c.session));
    rows.prepend(row);
    while (rows.rows.length > 200) rows.deleteRow(-1);
    byId("no-rows").hidden = true;
  };
  // Characters that hide or turn others are told, as the server does.
  const visible = (text) => text.replace(/[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu,
    (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

  if (body.dataset.events) {
    const address = new URL(body.dataset.events, location.href);
    if (rows) {
      byId("live").parentElement.hidden = false;
      for (const [k, v] of new URLSearchParams(location.search)) address.searchParams.set(k, v);
      address.searchParams.set("calls", "1");
    }
    const source = new EventSource(address);
    source.addEventListener("waiting", (e) => showWaiting(JSON.parse(e.data)));
    source.addEventListener("call", (e) => { if (rows && byId("live").checked) showCall(JSON.parse(e.data)); });
    addEventListener("pagehide", () => source.close());
  }

  // The form of a call: the JSON beside it is kept in step with its fields, and they with it.
  const form = byId("try");
  if (form) {
    const raw = byId("raw"), source = byId("source");
    let turn = 0;
    const ask = async (action) => {
      const mine = ++turn;
      const data = new URLSearchParams(new FormData(form));
      data.set("action", action);
      const answer = await fetch(form.getAttribute("action"), { method: "POST", body: data, headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      return mine === turn ? page : null;
    };
    const problem = (page) => {
      const now = byId("raw-error"), next = page.getElementById("raw-error");
      now.textContent = next.textContent;
      now.hidden = next.hidden;
      raw.toggleAttribute("aria-invalid", !next.hidden);
    };
    const fieldsChanged = async (action = "form") => {
      source.value = "form";
      const focused = document.activeElement?.id;
      const page = await ask(action);
      if (!page) return;
      raw.value = page.getElementById("raw").value;
      problem(page);
      if (action !== "form") {
        byId("fields").replaceWith(document.adoptNode(page.getElementById("fields")));
        (byId(focused) || byId("fields").querySelector("input:not([type=hidden]), select, textarea, button"))?.focus();
      }
    };
    let pause;
    form.addEventListener("input", (e) => {
      clearTimeout(pause);
      if (e.target === raw) {
        source.value = "raw";
        pause = setTimeout(async () => {
          const page = await ask("raw");
          if (!page) return;
          problem(page);
          if (byId("raw-error").hidden) byId("fields").replaceWith(document.adoptNode(page.getElementById("fields")));
        }, 300);
        return;
      }
      source.value = "form";
      if (e.target.dataset.redraw) fieldsChanged("redraw");
      else pause = setTimeout(fieldsChanged, 250);
    });
    form.addEventListener("submit", (e) => {
      clearTimeout(pause);
      const action = e.submitter?.value || "run";
      if (/^(add|remove|open) /.test(action)) {
        e.preventDefault();
        fieldsChanged(action);
      } else turn++; // what comes back late changes nothing
    });
  }

  // Copying.
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      byId("status").textContent = "Copied";
    });
  }
})();
