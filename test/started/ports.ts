/**
 * Below the ports that the kernel gives to connections (32,768 and up): one of those may be taken by any client between
 * the moment it is found and the moment a server listens on it. A Redis of a cluster also listens 10,000 above.
 */
const PORT_MIN = 11_000;
const PORTS = 10_000;

const given = new Set<number>();

/** A port of 127.0.0.1 that no process listens on, and that this process gives once. */
export function freePort(): number {
  const port = PORT_MIN + Math.floor(Math.random() * PORTS);
  if (given.has(port) || !(isFree(port) && isFree(port + PORTS))) return freePort();
  given.add(port);
  return port;
}

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: '127.0.0.1', port, socket: { data: () => undefined } }).stop(true);
    return true;
  } catch {
    return false;
  }
}
