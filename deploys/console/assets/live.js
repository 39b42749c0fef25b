/* Live parts do not refresh while the page is hidden or while they are in use. */
let openDetails = [];

function isInUse(part) {
  const selection = getSelection();
  const isSelected = !selection.isCollapsed && part.contains(selection.anchorNode);
  return isSelected || (part.contains(document.activeElement) && document.activeElement !== part);
}

document.addEventListener('htmx:beforeRequest', (event) => {
  const part = event.target;
  if (!part.matches('[data-live]')) return;
  if (document.hidden || isInUse(part)) event.preventDefault();
});

/* Since the request the part may have come into use, or the session may have ended. */
document.addEventListener('htmx:beforeSwap', (event) => {
  const { target: part, xhr } = event.detail;
  if (!part.matches('[data-live]')) return;
  const wanted = new URL(part.getAttribute('hx-get'), location.href);
  const isElsewhere = new URL(xhr.responseURL).pathname !== wanted.pathname;
  event.detail.shouldSwap &&= !isElsewhere && !isInUse(part);
  openDetails = [...part.querySelectorAll('details[open][id]')].map(({ id }) => id);
  if (isElsewhere) location.reload();
});

document.addEventListener('htmx:afterSwap', () => {
  for (const id of openDetails) document.getElementById(id)?.setAttribute('open', '');
  openDetails = [];
});
