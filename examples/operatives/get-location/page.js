// A page that offers get-location. Whoever may call it on the core is answered here, by a person.

import { connectOperative, Fault, tool } from "./wharf-sdk/index.js";

const GetLocation = tool({
  name: "get-location",
  description: "Says where the person at the page is, if they agree.",
  sideEffects: false,
  input: {
    type: "object",
    properties: { accuracy: { enum: ["high", "low"], default: "low" } },
  },
  output: {
    type: "object",
    properties: { lat: { type: "number" }, lng: { type: "number" } },
    required: ["lat", "lng"],
  },
  progress: { type: "object", properties: { status: { type: "string" } }, required: ["status"] },
  async run({ accuracy }, cx) {
    cx.progress({ status: "asking" });
    if (!(await askPerson(accuracy, cx.signal))) {
      note(`Declined (${accuracy})`);
      throw Fault.declined("The person at the page declined.");
    }
    cx.progress({ status: "locating" });
    const place = await locate(accuracy);
    note(`Answered (${accuracy}): ${place.lat.toFixed(4)}, ${place.lng.toFixed(4)}`);
    return place;
  },
});

const form = document.querySelector("#core");
const state = document.querySelector("#state");

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const given = Object.fromEntries(new FormData(form));
  // Kept for this tab only, so that a reload offers the tool again.
  sessionStorage.setItem("core", JSON.stringify(given));
  offer(given);
});

const kept = sessionStorage.getItem("core");
if (kept) offer(JSON.parse(kept));

function offer({ url, token, provider }) {
  form.hidden = true;
  connectOperative(url, { provider, token, tools: [GetLocation], onState: show });
}

function show({ name, tools, fault }) {
  const words = {
    connecting: "Connecting",
    offered: `Offered as ${tools?.join(", ")}`,
    waiting: "Connection lost, trying again",
    closed: fault?.message ?? "Closed",
  };
  state.dataset.state = name;
  state.textContent = words[name];
  if (name === "closed") {
    form.hidden = false;
    sessionStorage.removeItem("core");
  }
}

/** Shows a request until somebody presses a button, or nobody wants the answer any more. */
function askPerson(accuracy, signal) {
  const card = document.querySelector("#request").content.cloneNode(true).querySelector("li");
  card.querySelector(".accuracy").textContent = accuracy === "high" ? "exactly" : "roughly";
  document.querySelector("#requests").append(card);
  return new Promise((resolve) => {
    const end = (agreed) => {
      card.remove();
      resolve(agreed);
    };
    card.querySelector(".answer").addEventListener("click", () => end(true));
    card.querySelector(".decline").addEventListener("click", () => end(false));
    signal.addEventListener("abort", () => end(false));
  });
}

function locate(accuracy) {
  return new Promise((resolve, reject) => {
    navigator.geolocation.getCurrentPosition(
      ({ coords }) => resolve({ lat: coords.latitude, lng: coords.longitude }),
      () => reject(new Fault("tool.failed", "The browser does not say where it is.")),
      { enableHighAccuracy: accuracy === "high", timeout: 30_000 },
    );
  });
}

function note(text) {
  const line = document.createElement("li");
  line.textContent = `${new Date().toLocaleTimeString()} ${text}`;
  document.querySelector("#log").prepend(line);
}
