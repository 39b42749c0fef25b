/* A message and a secret are shown once: a reload or a bookmark does not ask for them again. */
const address = new URL(location.href);
if (address.searchParams.has('done') || address.searchParams.has('shown')) {
  address.searchParams.delete('done');
  address.searchParams.delete('shown');
  history.replaceState(history.state, '', address);
}
