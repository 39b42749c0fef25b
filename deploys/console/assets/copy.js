/* Buttons that copy the text of another element. */
const COPIED_MS = 1_500;

document.addEventListener('click', async ({ target }) => {
  const button = target.closest('[data-copy]');
  const source = button && document.getElementById(button.dataset.copy);
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
