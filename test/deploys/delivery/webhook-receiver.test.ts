import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { eventHeaders } from '../../../deploys/delivery/send.ts';
import { pingBody } from '../../../deploys/outbox/enqueue.ts';
import { Secret } from '../../../shared/secret.ts';
import { childEnv } from '../../started/process.ts';
import { javascript } from './verifiers/snippet.ts';

const OLD = new Secret('whsec_old');
const NEW = new Secret('whsec_new');
const OTHER = new Secret('whsec_other');

let made = 0;

/** A delivery as the sender makes it, signed `agoSeconds` before now. */
function delivery(current: Secret, next?: Secret, agoSeconds = 0) {
  made += 1;
  const id = `00000000-0000-4000-8000-${String(made).padStart(12, '0')}`;
  const body = Buffer.from(pingBody(id, 1_790_000_000_000));
  const signedAt = Math.floor(Date.now() / 1_000) - agoSeconds;
  const attempt = { deliveryId: id, eventKind: 'ping', body } as const;
  return { id, body, headers: eventHeaders(attempt, signedAt, { current, next }) };
}

/** Puts the receiver of the page into a folder and runs it there. */
function runReceiver(program: string, env: Record<string, string>) {
  const folder = mkdtempSync(join(tmpdir(), 'receiver-'));
  writeFileSync(join(folder, 'verify.mjs'), javascript('verify.ts'));
  writeFileSync(join(folder, 'receiver.mjs'), javascript('receiver.ts'));
  const child = Bun.spawn([program, 'receiver.mjs'], {
    cwd: folder,
    env: childEnv({ PORT: '0', ...env }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: 30_000,
  });
  const end = async () => {
    child.kill('SIGKILL');
    await child.exited;
    rmSync(folder, { recursive: true, force: true });
  };
  return { child, end };
}

async function startReceiver(program: string, secret: Secret) {
  const { child, end } = runReceiver(program, { WEBHOOK_SECRET: secret.reveal() });
  const lines = createInterface({ input: Readable.fromWeb(child.stdout as never) })[Symbol.asyncIterator](); // Node's type of the same
  const printed = async (): Promise<string> => (await lines.next()).value ?? '';
  const [, port] = /"port":(\d+)/.exec(await printed()) ?? [];
  if (port === undefined) throw new Error(`it does not listen: ${await child.stderr.text()}`);
  return { port: Number(port), printed, end };
}

type Sent = Readonly<{ body: Buffer; headers: Readonly<Record<string, string>> }>;

const hasNode = Bun.which('node') !== null;
if (!hasNode) console.log('The receiver of docs/webhooks.md is not tested on Node here: there is no node.');

describe.each([
  ['Bun', process.execPath],
  ['Node', 'node'],
])('the receiver of docs/webhooks.md on %s', (name, program) => {
  const here = test.skipIf(name === 'Node' && !hasNode);
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  beforeAll(async () => {
    if (name === 'Bun' || hasNode) receiver = await startReceiver(program, NEW);
  }, 20_000);
  afterAll(async () => receiver?.end());

  const post = async ({ body, headers }: Sent) => {
    const init = { method: 'POST', body, headers };
    return (await fetch(`http://127.0.0.1:${receiver.port}/`, init)).status;
  };
  /** Sends one more, which must be the next that is worked on: so nothing before it was. */
  const expectNextToBeWorkedOn = async () => {
    const next = delivery(NEW);
    expect(await post(next)).toBe(204);
    expect(await receiver.printed()).toBe(`ping ${next.id}`);
  };

  here(
    'works once on a delivery that comes twice, also under another X-Service-Delivery, and answers 204',
    async () => {
      const first = delivery(NEW);
      const headers = { ...first.headers, 'X-Service-Delivery': delivery(NEW).id };
      expect(await post(first)).toBe(204);
      expect(await receiver.printed()).toBe(`ping ${first.id}`);
      for (const again of [first, { ...first, headers }]) expect(await post(again)).toBe(204);
      await expectNextToBeWorkedOn();
    },
  );

  here('answers 401 to what is forged, stale or not signed, and does not work on it', async () => {
    const { body } = delivery(NEW);
    const refused = [
      delivery(OTHER),
      delivery(OTHER, OTHER),
      delivery(NEW, undefined, 310),
      { ...delivery(NEW), body },
      { body, headers: {} },
    ];
    expect(await Promise.all(refused.map(post))).toEqual(refused.map(() => 401));
    await expectNextToBeWorkedOn();
  });

  here('holding the new secret, accepts deliveries before and after it takes over (C.4)', async () => {
    expect(await post(delivery(OLD))).toBe(401);
    const before = delivery(OLD, NEW);
    expect(await post(before)).toBe(204);
    expect(await receiver.printed()).toBe(`ping ${before.id}`);
    await expectNextToBeWorkedOn();
  });

  here('outlives a sender that hangs up and a body that is too long', async () => {
    const socket = connect(receiver.port, '127.0.0.1');
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    socket.on('close', () => resolve());
    const begun = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nbegun';
    socket.write(begun, () => socket.destroy());
    await closed;
    const long = { ...delivery(NEW), body: Buffer.alloc(70_000) };
    expect(await post(long).catch(() => 'cut')).toBe('cut');
    await expectNextToBeWorkedOn();
  });

  here('does not start without a secret, under which anybody could sign', async () => {
    const { child, end } = runReceiver(program, {});
    expect(await child.exited).not.toBe(0);
    expect(await child.stderr.text()).toContain('WEBHOOK_SECRET is not set');
    await end();
  });
});
