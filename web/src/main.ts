// Entry: reads the document that was put into the page and shows it with the view that its schema asks for.
const data = document.getElementById("smbscope-data")?.textContent ?? "";
const page = document.getElementById("page");
if (page) page.textContent = String((JSON.parse(data) as { schema: unknown }).schema);
