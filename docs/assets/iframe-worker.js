// Search runs in a worker, and browsers start none for a page that was opened from a folder.
// There, an invisible frame does the worker's job. From a web server nothing is changed.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.ready = new Promise((done) => frame.addEventListener("load", () => done(frame.contentWindow)));
      const script = document.createElement("script");
      script.src = address;
      frame.srcdoc = `<!doctype html><title>search</title><script>
        postMessage = (data) => frameElement.answered(data);
      </script>${script.outerHTML}`;
      frame.answered = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      document.body.append(frame);
    }

    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
  };
}
