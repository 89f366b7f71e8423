// What is shown is kept in the page's address, so that a view can be sent: page.html#place=3&column=AGE.

const address = {
  read: () => Object.fromEntries(new URLSearchParams(location.hash.slice(1))),

  // Change these entries and keep the others; null takes one away.
  keep(entries) {
    const kept = { ...address.read(), ...entries };
    const given = Object.entries(kept).filter(([, value]) => value !== null);
    history.replaceState(null, "", `#${new URLSearchParams(given)}`);
  },

  // Call this when somebody changes the address by hand.
  changed: (show) => addEventListener("hashchange", () => show(address.read())),

  // Links to sections scroll there without taking the place of what is kept.
  sections() {
    document.addEventListener("click", (event) => {
      const link = event.target.closest('a[href^="#"]');
      const target = link && $(link.getAttribute("href").slice(1));
      if (!target) return;
      event.preventDefault();
      address.keep({ at: target.id });
      address.go(target);
    });
    const { at } = address.read();
    if (at && $(at)) address.go($(at));
  },

  go(target) {
    if (!target.hasAttribute("tabindex")) target.setAttribute("tabindex", "-1");
    target.focus({ preventScroll: true });
    target.scrollIntoView();
  },
};
