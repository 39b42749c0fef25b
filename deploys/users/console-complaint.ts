/** Why nobody could log in under this address, in a sentence that says what to do; `undefined`: they can. */
export function consoleComplaint(publicUrl: URL): string | undefined {
  if (publicUrl.protocol === 'https:' || isLoopback(publicUrl)) return undefined;
  return `The console is off: browsers keep no login over plain http from ${publicUrl.host}. Set deploys.public_url to the https:// address that users open (a proxy with TLS in front of deploys.listen), or to http://127.0.0.1 with the port for use on this machine alone.`;
}

/** Whether only this machine is reached by the address. */
export function isLoopback({ protocol, hostname }: URL): boolean {
  return (
    (protocol === 'http:' || protocol === 'https:') &&
    (hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname))
  );
}
