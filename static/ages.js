// Ages move by themselves, by the server's clock and in the words of dashboard/ui/format.py.
(() => {
  "use strict";
  const EVERY = 5000; // often enough for an age in seconds, seldom enough to stay calm
  const MINUTE = 60, HOUR = 3600, DAY = 86400;
  const two = (whole, big, bigName, small, smallName) => {
    const rest = Math.floor((whole % big) / small);
    return `${Math.floor(whole / big)} ${bigName}${rest ? ` ${rest} ${smallName}` : ""}`;
  };
  const duration = (seconds) => {
    const whole = Math.floor(seconds);
    if (whole < MINUTE) return `${whole} s`;
    if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min`;
    return whole < 2 * DAY ? two(whole, HOUR, "h", MINUTE, "min") : two(whole, DAY, "d", HOUR, "h");
  };
  const WORDS = {
    age: (seconds) => (seconds < -1 ? `in ${duration(-seconds)}` : seconds < 2 ? "just now" : `${duration(seconds)} ago`),
    key: (seconds) => (seconds < 0 ? `key safe for ${duration(-seconds)}` : "closed: the provider may have forgotten the key"),
  };

  // A browser's clock may be wrong: what counts is how far it stands from the server's.
  let ahead = 0;
  const compare = () => {
    const pulse = document.getElementById("desk-pulse");
    if (pulse) ahead = Date.now() - Date.parse(pulse.dataset.now);
  };
  const move = () => {
    const selection = document.getSelection();
    for (const time of document.querySelectorAll("time[data-moves]")) {
      const text = WORDS[time.dataset.moves]((Date.now() - ahead - Date.parse(time.dateTime)) / 1000);
      const selected = selection && !selection.isCollapsed && selection.containsNode(time, true);
      if (text !== time.textContent && !selected) time.textContent = text;
    }
  };
  compare();
  setInterval(move, EVERY);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) move(); });
  document.addEventListener("htmx:afterSettle", (event) => { if (event.target.id === "desk-pulse") compare(); });
})();
