// Hands on the timeline: a click or drag seeks, hovering explains, ctrl and wheel
// zooms, the overview moves what is in view. Plain scrolling is left to the page.

/** Listen to a timeline's lanes and overview. */
function handle(timeline) {
  const { box } = timeline;
  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    box.setPointerCapture(event.pointerId);
    timeline.seek(timeline.at(event.offsetX));
  });
  box.addEventListener("pointermove", (event) => {
    if (box.hasPointerCapture(event.pointerId)) timeline.seek(timeline.at(event.offsetX));
    else point(timeline, event);
  });
  box.addEventListener("pointerleave", hideTip);
  box.addEventListener("wheel", (event) => turnWheel(timeline, event), { passive: false });
  const overview = byId("overview");
  overview.addEventListener("pointerdown", (event) => {
    overview.setPointerCapture(event.pointerId);
    centre(timeline, event);
  });
  overview.addEventListener("pointermove", (event) => {
    if (overview.hasPointerCapture(event.pointerId)) centre(timeline, event);
  });
}

function centre(timeline, event) {
  const at = (event.offsetX / timeline.width) * timeline.duration;
  const length = timeline.to - timeline.from;
  if (length < timeline.duration) timeline.view(at - length / 2, at + length / 2);
  else timeline.seek(at);
}

function point(timeline, event) {
  const { offsetX: x, offsetY: y } = event;
  const under = timeline.hits.findLast(
    (one) => x >= one.left && x <= one.right && y >= one.top && y <= one.bottom,
  );
  showTip(under?.words, event.clientX, event.clientY);
}

function turnWheel(timeline, event) {
  const length = timeline.to - timeline.from;
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    timeline.zoom(Math.exp(clamp(event.deltaY, -60, 60) / 120), timeline.at(event.offsetX));
  } else if (event.deltaX && length < timeline.duration) {
    event.preventDefault();
    const shift = (event.deltaX / timeline.width) * length;
    timeline.view(timeline.from + shift, timeline.to + shift);
  }
}
