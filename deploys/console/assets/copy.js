/* Buttons that copy the text of another element. */
const COPIED_MS = 1_500;

document.addEventListener('click', async ({ target }) => {
  const button = target.closest('[data-copy]');
  // The drawer may show a thing that the page behind it names by the same id.
  const source = button?.closest('main, dialog').querySelector(`[id="${CSS.escape(button.dataset.copy)}"]`);
  if (!source) return;
  const text = source.dataset.full ?? source.textContent.trim();
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without the right to write, the text is at least ready to be copied by hand.
    getSelection().selectAllChildren(source);
    return;
  }
  button.dataset.copied = '';
  setTimeout(() => delete button.dataset.copied, COPIED_MS);
});
