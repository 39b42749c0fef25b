import { systemClock } from '../../shared/clock.ts';
import { nthPublic } from '../../test/started/namespace.ts';
import { createAuthority } from '../../test/started/receiver-certificates.ts';
import { startDns } from '../../test/started/receiver-dns.ts';

/** A POST as it came: to the nth webhook's host, of which delivery, about which program and slot, when. */
export type SeenPost = Readonly<{ n: number; id: string; about: string; atMs: number }>;

/** The host of the nth webhook; each has an address of its own. */
export const hostOf = (n: number) => `h${n}.example.com`;

if (import.meta.main) await serve(process.argv[2] ?? '', Number(process.argv[3]), Number(process.argv[4]));

/**
 * All receivers of a bench and the name server that leads to them, as one process: an answer after `delayMs`, from the
 * first `hanging` hosts none. The authority's certificate goes to `caPath`. A GET gives the POSTs that came.
 */
async function serve(caPath: string, delayMs: number, hanging: number): Promise<void> {
  const authority = createAuthority();
  await Bun.write(caPath, authority.cert);
  await startDns((name, type) => {
    const n = numberOf(name);
    if (n === undefined) return 'no-such-name';
    return type === 'A' ? [nthPublic(n)] : [];
  }, 53);
  const posts: SeenPost[] = [];
  const server = Bun.serve({
    hostname: '0.0.0.0',
    port: 443,
    idleTimeout: 60,
    tls: authority.issue({ dns: ['*.example.com'] }),
    fetch: async (request) => {
      if (request.method === 'GET') return Response.json(posts);
      const atMs = systemClock.now();
      const n = numberOf(request.headers.get('host') ?? '') ?? -1;
      const { id, data } = (await request.json()) as any; // oxlint-disable-line no-explicit-any -- what the app under test sends
      posts.push({ n, id, about: `${data.program_id} ${data.deploy_slot}`, atMs });
      await systemClock.sleep(n < hanging ? 60_000 : delayMs, request.signal);
      return new Response(null, { status: 204 });
    },
  });
  console.log(JSON.stringify({ ready: 'receivers', url: server.url.href }));
}

function numberOf(name: string): number | undefined {
  const digits = /^h(\d+)\.example\.com$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
