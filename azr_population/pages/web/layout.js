"use strict";
// Where things stand on a page: the table of contents, and rows of cards of nearly equal length.

function contents(host) {
  for (const section of document.querySelectorAll("main section")) {
    const link = make("a", { href: "#" + section.id }, section.dataset.nav || section.querySelector("h2").textContent);
    host.append(link);
    new IntersectionObserver((seen) => {
      for (const one of seen) link.classList.toggle("here", one.isIntersecting);
    }, { rootMargin: "-20% 0px -60% 0px" }).observe(section);
  }
}

// Four cards where three fit are two rows of two: no card stands alone beside an empty place.
function balance(grid, least) {
  const cards = [...grid.children], gap = 12;
  if (!cards.length) return;
  onWidth(grid, (width) => {
    const fit = Math.max(1, Math.floor((width + gap) / (least + gap)));
    const rows = Math.ceil(cards.length / fit), base = Math.floor(cards.length / rows), longer = cards.length % rows;
    cards.forEach((card, i) => {
      const beside = i < longer * (base + 1) ? base + 1 : base;
      card.style.flex = `1 1 calc((100% - ${(beside - 1) * gap}px) / ${beside} - 0.5px)`;
    });
  });
}
