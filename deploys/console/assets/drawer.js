/* Links that open at the side. With a modifier key, in a new tab and on any trouble they are ordinary links. */
const drawer = document.getElementById('drawer');

document.addEventListener('click', async (event) => {
  const link = event.target.closest('a[data-drawer]');
  const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !isPlain || event.defaultPrevented) return;
  event.preventDefault();
  try {
    const answer = await fetch(link.href, { headers: { accept: 'text/html' } });
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const content = page.getElementById('content');
    if (!answer.ok || answer.redirected || !content) throw new Error('no page for the drawer');
    for (const part of content.querySelectorAll('.crumbs, #flash')) part.remove();
    show([...content.childNodes]);
  } catch {
    location.assign(link.href);
  }
});

function show(nodes) {
  const body = document.getElementById('drawer-body');
  body.replaceChildren(...nodes);
  const heading = body.querySelector('h1');
  if (heading) {
    heading.tabIndex = -1;
    drawer.setAttribute('aria-label', heading.textContent);
  }
  window.htmx?.process(body);
  body.dispatchEvent(new CustomEvent('htmx:load', { bubbles: true }));
  if (!drawer.open) drawer.showModal();
  heading?.focus();
}

/* A press on the dimmed page closes it; the dialog itself gives the focus back to the link. */
drawer.addEventListener('click', (event) => {
  if (event.target !== drawer) return;
  const { left } = drawer.getBoundingClientRect();
  if (event.clientX < left) drawer.close();
});
