
// Marks the boxes of the flame graphs whose function has the words typed, and says how much of the width they take.
for (const form of document.querySelectorAll(".search")) {
  const [field, said] = [form.querySelector("input"), form.querySelector("output")];
  const graphs = [...form.parentElement.querySelectorAll(".picture svg")];
  const find = () => {
    const words = field.value.trim().toLowerCase();
    let found = 0, share = 0;
    for (const graph of graphs) {
      let marked = [];
      for (const box of graph.querySelectorAll("g")) {
        const name = box.querySelector("title").textContent.split(": ")[0].toLowerCase();
        const hit = words !== "" && name.includes(words);
        box.classList.toggle("found", hit);
        const rect = box.querySelector("rect"), from = Number(rect.getAttribute("x"));
        if (hit) marked.push([from, from + Number(rect.getAttribute("width"))]);
      }
      if (graph.closest(".narrow")) continue;
      // Boxes above each other count once.
      let end = 0, sum = 0;
      for (const [from, to] of marked.sort((a, b) => a[0] - b[0])) {
        sum += Math.max(0, to - Math.max(from, end));
        end = Math.max(end, to);
      }
      found += marked.length;
      share = Math.max(share, sum / graph.viewBox.baseVal.width);
    }
    said.textContent = words === "" ? "" : `${found} ${found === 1 ? "box" : "boxes"}, at most ${Math.round(share * 100)} % of a graph's width`;
  };
  form.hidden = false;
  field.addEventListener("input", find);
  find();
}
