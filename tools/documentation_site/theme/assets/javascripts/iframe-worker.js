// Browsers refuse workers on a page that was opened as a file. Here such a worker is a script in a hidden frame, so that the search of the
// site works without a server. The option `polyfills` of zensical.toml loads this file in place of a download.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.frame.contentWindow.postMessage = (data) => this.receive(data);
      this.ready = new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = address;
        script.onload = resolve;
        script.onerror = reject;
        this.frame.contentDocument.body.append(script);
      });
      this.ready.catch(() => this.onerror?.(new ErrorEvent("error", { message: `cannot load ${address}` })));
    }

    receive(data) {
      const event = new MessageEvent("message", { data: structuredClone(data) });
      this.onmessage?.(event);
      this.dispatchEvent(event);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
