// A scrolling box shows on which side there is more of it: by a shadow, and by a line below.

function framed(box) {
  const frame = make(null, "div", { class: "frame" });
  box.replaceWith(frame);
  const view = make(frame, "div", { class: "shaded" });
  view.append(box);
  const line = make(frame, "p", { class: "more", "aria-hidden": "true" });
  const look = () => {
    const [down, across] = [box.scrollHeight - box.clientHeight, box.scrollWidth - box.clientWidth];
    const [below, right] = [down - box.scrollTop > 4, across - box.scrollLeft > 4];
    view.classList.toggle("below", below);
    view.classList.toggle("right", right);
    line.hidden = down <= 4 && across <= 4;
    line.textContent = [below ? "↓ scroll for more rows" : "", right ? "→ scroll for more columns" : ""].filter(Boolean).join(" · ") || "end of the table";
  };
  box.addEventListener("scroll", look, { passive: true });
  const sizes = new ResizeObserver(look);
  sizes.observe(box);
  sizes.observe(box.firstElementChild);
  look();
}
