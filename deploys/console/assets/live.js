/* Parts that keep themselves up to date wait while nobody looks and while somebody uses them. */
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

/* The answer may come while the part has come into use, or be another page, such as the login's. */
document.addEventListener('htmx:beforeSwap', (event) => {
  const part = event.detail.target;
  if (!part.matches('[data-live]')) return;
  const isOther = !event.detail.serverResponse.includes(`id="${part.id}"`);
  if (isInUse(part) || isOther) event.detail.shouldSwap = false;
  openDetails = [...part.querySelectorAll('details[open][id]')].map(({ id }) => id);
});

document.addEventListener('htmx:afterSwap', () => {
  for (const id of openDetails) document.getElementById(id)?.setAttribute('open', '');
  openDetails = [];
});

let openDetails = [];
