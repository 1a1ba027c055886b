(() => {
  "use strict";
  const pages = document.querySelector("nav details");
  const narrow = matchMedia("(max-width: 50rem)");
  const fit = () => { pages.open = !narrow.matches; };
  narrow.addEventListener("change", fit);
  fit();

  for (const block of document.querySelectorAll("main pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(block.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(block);
        button.textContent = "Press Ctrl+C";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    const frame = document.createElement("div");
    frame.className = "example";
    block.replaceWith(frame);
    frame.append(button, block);
  }

  const form = document.querySelector("form[role=search]");
  const field = form.querySelector("input");
  const list = form.querySelector("ul");
  const status = form.querySelector("[role=status]");
  const base = form.dataset.base;
  form.hidden = false;
  let index; // of sections: [title, address, text], read when search is first used
  const load = () => index ??= fetch(base + "docs/search").then((r) => {
    if (!r.ok) throw new Error(r.status);
    return r.json();
  }).then((all) => all.map(([title, address, text]) => ({ title, address, text, low: [title.toLowerCase(), text.toLowerCase()] })));

  const matches = (sections, terms) => {
    const found = [];
    for (const section of sections) {
      let score = 0;
      for (const term of terms) {
        const inTitle = section.low[0].includes(term), inText = section.low[1].includes(term);
        if (!inTitle && !inText) { score = 0; break; }
        score += (inTitle ? 10 : 0) + (inText ? 1 : 0);
      }
      if (score > 0) found.push({ section, score });
    }
    return found.sort((a, b) => b.score - a.score || a.section.title.length - b.section.title.length);
  };

  const show = (found, terms) => {
    list.replaceChildren(...found.slice(0, 12).map(({ section }) => {
      const item = document.createElement("li"), link = document.createElement("a"), excerpt = document.createElement("small");
      link.href = base + "docs" + section.address;
      link.textContent = section.title;
      const at = Math.max(0, section.low[1].indexOf(terms[0]) - 40);
      excerpt.textContent = (at > 0 ? "…" : "") + section.text.slice(at, at + 140);
      item.append(link, excerpt);
      return item;
    }));
    status.textContent = found.length === 0 ? "No results" : found.length === 1 ? "1 result" : found.length + " results";
  };

  const search = async () => {
    const terms = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (terms.length === 0) {
      list.replaceChildren();
      status.textContent = "";
      return;
    }
    try {
      const sections = await load();
      if (terms.join() === field.value.toLowerCase().split(/\s+/).filter(Boolean).join()) show(matches(sections, terms), terms);
    } catch {
      index = undefined;
      status.textContent = "The search index could not be loaded. Try again.";
    }
  };
  field.addEventListener("input", search);
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    list.querySelector("a")?.click();
  });
  form.addEventListener("keydown", (e) => {
    const links = [field, ...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    if (e.key === "Escape") {
      field.value = "";
      search();
      field.focus();
    } else if ((e.key === "ArrowDown" || e.key === "ArrowUp") && at >= 0) {
      e.preventDefault();
      links[Math.min(links.length - 1, Math.max(0, at + (e.key === "ArrowDown" ? 1 : -1)))].focus();
    }
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
      e.preventDefault();
      field.focus();
    }
  });
})();
