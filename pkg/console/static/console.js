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
    const tool = document.createElement("th");
    tool.scope = "row";
    const toTool = document.createElement("a");
    toTool.href = `${body.dataset.root}tools/${c.tool.split("/").map(encodeURIComponent).join("/")}`;
    toTool.textContent = visible(c.tool);
    tool.append(toTool);
    row.append(tool);
    cell(row, c.status, "decision " + c.status).append(c.error ? " " + c.error : "");
    cell(row, c.decision);
    cell(row, c.duration).className = "num";
    if (c.principal) cell(row, visible(c.principal));
    else cell(row, "anonymous", "muted");
    cell(row, visible(c.session)).className = "wide";
    rows.prepend(row);
    while (rows.rows.length > 50) rows.deleteRow(-1);
    byId("no-rows").hidden = true;
    rows.closest(".scroll").hidden = false;
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
    const source = byId("source"), run = byId("run");
    let turn = 0, pause, busy = false;
    const ask = async (action) => {
      const data = new URLSearchParams(new FormData(form));
      data.set("action", action);
      const answer = await fetch(form.getAttribute("action"), { method: "POST", body: data, headers: { Accept: "text/html" } });
      const text = await answer.text();
      if (!answer.headers.get("Content-Type")?.startsWith("text/html")) throw Object.assign(new Error(text), { told: text }); // it is not served here any more
      const page = new DOMParser().parseFromString(text, "text/html");
      if (page.getElementById("outcome")) return page;
      byId("main").replaceWith(document.adoptNode(page.getElementById("main"))); // signed out, or the tool is gone
      throw new Error("another page");
    };
    const put = (page, id) => byId(id).replaceWith(document.adoptNode(page.getElementById(id)));
    const putFields = (page) => {
      const { id, selectionStart, selectionEnd } = document.activeElement;
      put(page, "fields");
      const field = byId(id);
      field?.focus({ preventScroll: true });
      if (selectionStart != null) field?.setSelectionRange?.(selectionStart, selectionEnd);
    };
    const putRaw = (page) => { byId("raw").value = page.getElementById("raw").value; };
    const putErrors = (page) => {
      const raw = page.getElementById("raw-error");
      byId("raw").toggleAttribute("aria-invalid", !raw.hidden);
      put(page, "raw-error");
      if (!form.elements.checked) return;
      for (const next of page.querySelectorAll(".help")) {
        const field = byId(next.id)?.parentElement, wrong = next.parentElement.matches(".wrong");
        if (!field) continue;
        field.classList.toggle("wrong", wrong);
        const control = byId(next.id.slice(0, -"-help".length));
        if (!wrong) control?.removeAttribute("aria-invalid");
        else if (control?.matches("input, select, textarea")) control.setAttribute("aria-invalid", "true");
        put(page, next.id);
      }
      const list = page.getElementById("wrong");
      if (list && list.innerHTML !== byId("wrong").innerHTML) put(page, "wrong");
    };
    const changed = async (action) => {
      const mine = ++turn, before = new Set([...form.querySelectorAll("[id]")].map((e) => e.id));
      const page = await ask(action).catch(() => null);
      if (!page || mine !== turn) return;
      if (action !== "raw") putRaw(page);
      if (action !== "form" && page.getElementById("raw-error").hidden) putFields(page);
      putErrors(page);
      const find = (selector, is) => [...form.querySelectorAll(selector)].find(is)?.focus();
      if (/^(add|open) /.test(action)) find("input:not([type=hidden]), select, textarea", (e) => e.id && !before.has(e.id));
      if (action.startsWith("remove ")) find("button", (e) => e.value === action.replace("remove", "open") || e.value === action.replace("remove", "add").replace(/\/[^/]*$/, ""));
    };
    const call = async (button) => {
      const action = button.value, pressed = button.matches(".actions *") ? button : run, name = pressed.textContent, mine = ++turn;
      busy = true;
      pressed.textContent = pressed.dataset.busy || name;
      for (const one of form.querySelectorAll(".actions button")) one.setAttribute("aria-disabled", "true");
      byId("status").textContent = pressed.textContent;
      const page = await ask(action).catch((e) => e);
      busy = false;
      pressed.textContent = name;
      for (const one of form.querySelectorAll(".actions button")) one.removeAttribute("aria-disabled");
      if (page instanceof Error) {
        byId("status").textContent = "";
        byId("outcome")?.replaceChildren(Object.assign(document.createElement("p"), { className: "problem", role: "alert", textContent: page.told || "The server did not answer. The call may have been made: see Activity before you call again." }));
        return;
      }
      put(page, "outcome");
      if (mine === turn) { // what was typed since then stays
        putFields(page);
        putRaw(page);
        putErrors(page);
      }
      byId("status").textContent = byId("said")?.textContent || "";
      const wrong = byId("editor").querySelector("[aria-invalid], .wrong button");
      const seen = byId("outcome").getBoundingClientRect();
      if (wrong) wrong.focus();
      else if (seen.top < 0 || seen.top > innerHeight / 2) byId("outcome").scrollIntoView();
    };
    byId("editor").addEventListener("input", (e) => {
      clearTimeout(pause);
      turn++; // an answer to what was there before changes no field
      const raw = e.target.id === "raw";
      source.value = raw ? "raw" : "form";
      if (e.target.dataset.redraw) changed("redraw");
      else pause = setTimeout(changed, 250, raw ? "raw" : "form");
    });
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      clearTimeout(pause);
      const button = e.submitter || run;
      if (/^(add|remove|open) /.test(button.value)) { source.value = "form"; changed(button.value); }
      else if (!busy) call(button);
    });
    // A text of several lines that is pasted into one line keeps them.
    form.addEventListener("paste", (e) => {
      const line = e.target, text = e.clipboardData.getData("text/plain").replace(/\r\n?/g, "\n");
      if (line.type !== "text" || line.inputMode || !text.trim().includes("\n")) return;
      e.preventDefault();
      const area = document.createElement("textarea");
      for (const { name, value } of line.attributes) if (name !== "type" && name !== "value") area.setAttribute(name, value);
      area.value = line.value;
      area.setRangeText(text, line.selectionStart, line.selectionEnd, "end");
      line.replaceWith(area);
      area.focus();
      area.dispatchEvent(new Event("input", { bubbles: true }));
    });
  }

  // Copying.
  body.classList.toggle("copies", !!navigator.clipboard);
  body.addEventListener("click", async (e) => {
    if (!e.target.matches("button.copy")) return;
    await navigator.clipboard.writeText(e.target.previousElementSibling.textContent);
    byId("status").textContent = "Copied";
  });
})();
