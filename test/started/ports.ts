/**
 * Below the ports that the kernel gives to connections (32,768 and up): one of those may be taken by any client between
 * the moment it is found and the moment a server listens on it. A Redis of a cluster also listens 10,000 above.
 */
const PORT_MIN = 11_000;
const PORTS = 10_000;

/** A port of 127.0.0.1 that no process listens on, and that is given once in all processes of tests while this one runs. */
export function freePort(): number {
  const port = PORT_MIN + Math.floor(Math.random() * PORTS);
  return isFree(port) && isFree(port + PORTS) && reserve(port) ? port : freePort();
}

/** So that a server can be stopped and started again on its port, which nobody else gets meanwhile. */
function reserve(port: number): boolean {
  // A name of Linux alone, which ends with its process; elsewhere it would be a file.
  if (process.platform !== 'linux') return true;
  try {
    Bun.listen({ unix: `\0sluice-test-port-${port}`, socket: { data: () => undefined } }).unref();
    return true;
  } catch {
    return false;
  }
}

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: '127.0.0.1', port, socket: { data: () => undefined } }).stop(true);
    return true;
  } catch {
    return false;
  }
}
