// Shows a list of the versions next to this one, if the folder above the site contains versions.json, such as
// ["1.1.0", "1.0.0"]. Each entry is a folder with a built site. The list keeps the page if the other version has it.
const root = new URL(document.documentElement.dataset.content_root, location.href);
const sites = new URL("../", root);
const current = root.pathname.split("/").at(-2);

fetch(new URL("versions.json", sites)).then((answer) => answer.json()).then((versions) => {
  const list = document.createElement("select");
  list.className = "versions";
  list.setAttribute("aria-label", "Version");
  list.append(...versions.map((name) => new Option(name, name, false, name === current)));
  list.addEventListener("change", async () => {
    const site = new URL(`${list.value}/`, sites);
    const page = new URL(location.pathname.slice(root.pathname.length), site);
    const found = await fetch(page, {method: "HEAD"});
    location.assign(found.ok ? page : site);
  });
  document.querySelector(".sidebar-brand").after(list);
}).catch(() => {});  // a site without other versions
