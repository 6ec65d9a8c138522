// Pages that are opened from a folder may start no workers. The search's worker gets a hidden frame instead, which runs the same
// script: messages go in as events of its window, and come out of its postMessage.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      this.frame.addEventListener("load", () => this.#start(new URL(url, document.baseURI)), { once: true });
      document.body.append(this.frame);
    }

    #start(url) {
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => this.#receive(data);
      inner.importScripts = (...scripts) => Promise.all(scripts.map((script) => this.#load(new URL(script, url))));
      this.#load(url).then(() => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
    }

    #load(url) {
      const inner = this.frame.contentWindow.document;
      return new Promise((resolve, reject) => {
        const script = inner.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`cannot load ${url}`));
        inner.head.append(script);
      });
    }

    #receive(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      if (this.waiting) return void this.waiting.push(data);
      const inner = this.frame.contentWindow;
      inner.dispatchEvent(new inner.MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
