/* A search box over a list of choices on the page, and a choice that follows from ticking one of them. */
document.addEventListener('input', ({ target }) => {
  const list = target.dataset.narrows && document.getElementById(target.dataset.narrows);
  if (!list) return;
  const part = target.value.trim().toLowerCase();
  let shown = 0;
  for (const text of list.querySelectorAll('[data-text]')) {
    const isShown = text.dataset.text.includes(part);
    text.closest('label').hidden = !isShown;
    if (isShown) shown++;
  }
  const said = document.querySelector(`[data-narrowed="${list.id}"]`);
  said.textContent = part === '' ? '' : `${shown} found`;
});

document.addEventListener('change', ({ target }) => {
  const chosen =
    target.closest('.picker-list') && document.querySelector('[name="programs"][value="chosen"]');
  if (chosen) chosen.checked = true;
});

/* Enter in the search box does not send the form around it. */
document.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && event.target.dataset?.narrows) event.preventDefault();
});
