/* A message is shown once: a reload or a bookmark does not bring it back. */
const address = new URL(location.href);
if (address.searchParams.has('done')) {
  address.searchParams.delete('done');
  history.replaceState(history.state, '', address);
}
