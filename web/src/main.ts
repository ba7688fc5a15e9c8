// Entry point of a report: shows the embedded document.

import { followAddress } from "./lib/selection";
import { shown } from "./view";

const text = document.getElementById("smbscope-data")?.textContent ?? "";
document.getElementById("page")?.replaceChildren(...shown(text));
followAddress();
