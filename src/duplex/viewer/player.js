// Plays the sound that is inside the page, and knows where it is. Without sound
// the position still moves when asked, so that everything else works.

class Player {
  constructor(changed) {
    this.changed = changed;
    this.audio = new Audio();
    this.audio.preload = "auto";
    this.duration = 0;
    this.silentAt = 0;
    this.hasSound = false;
    this.solo = "both";
    this.graph = null;
    this.url = null;
    for (const event of ["play", "pause", "ended", "seeked", "loadedmetadata", "error"]) {
      this.audio.addEventListener(event, () => this.changed());
    }
  }

  /** Take the sound of one call; `mime` is null where there is none. */
  load(index, mime, duration) {
    this.audio.pause();
    this.audio.removeAttribute("src");
    if (this.url) URL.revokeObjectURL(this.url);
    this.url = null;
    this.duration = duration;
    this.silentAt = 0;
    this.hasSound = Boolean(mime);
    if (mime) {
      const bytes = bytesOf(byId(`sound-${index}`).textContent);
      this.url = URL.createObjectURL(new Blob([bytes], { type: mime }));
      this.audio.src = this.url;
    }
    this.changed();
  }

  get position() {
    return this.hasSound ? this.audio.currentTime * 1000 : this.silentAt;
  }

  get playing() {
    return this.hasSound && !this.audio.paused && !this.audio.ended;
  }

  seek(ms) {
    const at = clamp(ms, 0, this.duration);
    this.silentAt = at;
    if (this.hasSound) this.audio.currentTime = at / 1000;
    this.changed();
  }

  toggle() {
    if (!this.hasSound) return;
    if (this.playing) {
      this.audio.pause();
      return;
    }
    if (this.graph) this.graph.context.resume();
    this.audio.play().catch(() => this.changed());
  }

  set rate(value) {
    this.audio.playbackRate = value;
  }

  /** Hear both sides, each on its own ear, or one side on both. */
  hear(side) {
    this.solo = side;
    if (!this.graph && side !== "both") this.graph = this.wire();
    if (this.graph) {
      for (const [from, ear, gain] of this.graph.gains) {
        gain.gain.value = side === "both" ? Number(from === ear) : Number(from === side);
      }
      this.graph.context.resume();
    }
    this.changed();
  }

  wire() {
    const context = new AudioContext();
    const splitter = context.createChannelSplitter(2);
    const merger = context.createChannelMerger(2);
    const sides = ["caller", "assistant"];
    const gains = [];
    context.createMediaElementSource(this.audio).connect(splitter);
    sides.forEach((from, output) => {
      sides.forEach((ear, input) => {
        const gain = context.createGain();
        splitter.connect(gain, output);
        gain.connect(merger, 0, input);
        gains.push([from, ear, gain]);
      });
    });
    merger.connect(context.destination);
    return { context, gains, merger };
  }
}
