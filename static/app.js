// What HTML cannot do by itself: pause polls in hidden tabs, keep what a reader holds (focus, open rows), copy a hash.
(() => {
  "use strict";
  document.documentElement.classList.add("js");

  // A hidden tab asks nothing; it asks once when it is looked at again.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt.hasAttribute("data-poll") && document.hidden) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    for (const part of document.querySelectorAll("[data-poll]")) htmx.trigger(part, "seen");
  });

  // Selected text and a half-filled form are not swapped away from under the reader; the next poll tries again.
  const isHeld = (part) => {
    const selection = document.getSelection();
    const selects = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
    const types = part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select");
    return selects || types;
  };
  // A swap takes the keyboard's place away: the same element of the new part gets it back. Without an id it is known by
  // where it leads or what it does, and by its place among its likes.
  const LIKES = {
    id: (element) => element.id,
    href: (element) => element.getAttribute("href"),
    action: (element) => element.form && `${element.form.getAttribute("action")} ${element.name} ${element.value}`,
    copy: (element) => element.dataset.copy,
    row: (element) => element.closest("details[id]")?.id,
  };
  const likes = (part, sought) => [...part.querySelectorAll("a, button, summary, [tabindex]")].filter(
    (element) => element.tagName === sought.tag && Object.entries(LIKES).every(([name, of]) => (of(element) || "") === sought[name])
  );
  const focusIn = (part) => {
    const element = document.activeElement;
    if (element === part || !part.contains(element)) return null;
    const sought = Object.fromEntries(Object.entries(LIKES).map(([name, of]) => [name, of(element) || ""]));
    sought.tag = element.tagName;
    return { sought, place: likes(part, sought).indexOf(element) };
  };
  const kept = new Map(); // by the part's id: more than one part polls
  const restore = (part) => {
    const { open, focus } = kept.get(part.id) ?? {};
    for (const [id, wasOpen] of open ?? []) {
      const details = document.getElementById(id);
      if (details) details.open = wasOpen;
    }
    if (!focus || document.activeElement !== document.body) return;
    const found = likes(part, focus.sought);
    const next = found[focus.place] ?? found.at(-1) ?? part;
    if (next === part) part.tabIndex = -1; // it is gone: the keyboard goes on from where it was
    next.focus({ preventScroll: true });
  };
  document.addEventListener("htmx:beforeSwap", (event) => {
    const part = event.detail.target;
    // The session ended: the answer is the sign-in page, which belongs to the whole window, not into a part.
    if (event.detail.xhr.responseURL.includes("/sign-in/")) {
      event.detail.shouldSwap = false;
      location.reload();
      return;
    }
    if (!event.detail.requestConfig?.elt?.hasAttribute("data-poll")) return;
    if (isHeld(part)) event.detail.shouldSwap = false;
    if (!event.detail.shouldSwap) return;
    const open = [...part.querySelectorAll("details[id]")].map((details) => [details.id, details.open]);
    kept.set(part.id, { open, focus: focusIn(part) });
  });
  // At once, so that no key press falls between; and again once htmx has set the new attributes, which close rows.
  document.addEventListener("htmx:afterSwap", (event) => restore(event.target));
  document.addEventListener("htmx:afterSettle", (event) => {
    restore(event.target);
    kept.delete(event.target.id);
    const waits = document.getElementById("count-pending")?.dataset.count;
    document.title = (waits ? `(${waits}) ` : "") + document.title.replace(/^\(\d+\+?\) /, "");
  });

  // The clipboard does not exist on plain HTTP other than localhost: fall back to selecting the text.
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const done = await copy(button.dataset.copy);
    button.dataset.word ??= button.textContent; // a second click soon after reads "copied", not the button's word
    button.textContent = done ? "copied" : "not copied";
    setTimeout(() => { button.textContent = button.dataset.word; }, 1200);
  });

  // A double click on a final action sends it once; the server holds the same line.
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post" || event.defaultPrevented) return;
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "yes";
    setTimeout(() => { delete event.target.dataset.sent; }, 5000);
  });

  // The page one is on is in sight, also where the row of pages is wider than the screen.
  const here = document.querySelector(".desk nav [aria-current]");
  const pages = here?.closest("nav");
  if (pages) pages.scrollLeft = here.offsetLeft - pages.offsetLeft - (pages.clientWidth - here.offsetWidth) / 2;

  // A form that was refused: its summary is read first, the keyboard stands in the first field that needs another look.
  document.querySelector("[aria-invalid=true]")?.focus();

  // A dashboard that is gone looks alive on an open page: after two polls without an answer it says since when.
  const lost = document.getElementById("lost");
  const pulse = () => document.getElementById("desk-pulse");
  let misses = 0;
  let contact = Date.now();
  let drawn = contact; // when the pulse, which bears the server's clock, was drawn
  const clockAt = (moment) => {
    const [hours, minutes, seconds] = pulse().dataset.clock.split(":").map(Number);
    const passed = hours * 3600 + minutes * 60 + seconds + Math.round((moment - drawn) / 1000);
    return [passed / 3600 % 24, passed / 60 % 60, passed % 60].map((part) => String(Math.floor(part)).padStart(2, "0")).join(":");
  };
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!lost || !event.detail.elt.hasAttribute("data-poll")) return;
    const isAnswer = ![0, 502, 503, 504].includes(event.detail.xhr.status);
    misses = isAnswer ? 0 : misses + 1;
    if (isAnswer) contact = Date.now();
    else if (lost.hidden && misses > 1) lost.querySelector("span").textContent = clockAt(contact);
    lost.hidden = misses < 2;
  });
  document.addEventListener("htmx:afterSettle", (event) => { if (event.target === pulse()) drawn = Date.now(); });

  // Filters lie in a sheet on a narrow screen, open on a wide one.
  const narrow = matchMedia("(max-width: 720px)");
  for (const sheet of document.querySelectorAll("details.sheet")) if (narrow.matches) sheet.open = false;
})();
