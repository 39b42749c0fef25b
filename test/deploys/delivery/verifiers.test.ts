import { describe, expect, test } from 'bun:test';
import { eventHeaders, signatureOf } from '../../../deploys/delivery/send.ts';
import { upgradeBody } from '../../../deploys/outbox/enqueue.ts';
import { Secret } from '../../../shared/secret.ts';
import { ask, LANGUAGES } from './verifiers/language.ts';
import { PAGE } from './verifiers/snippet.ts';

const SECRET = 'whsec_0123456789abcdef';
const AT = 1_790_000_000;
const DELIVERY = '6f1c0d7e-3b52-4c1e-9a57-0e2f4d8b6a11';
const BODY = upgradeBody(DELIVERY, {
  programId: '675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8',
  label: 'Raydium AMM V4',
  previousSlot: 391_204_118,
  deploySlot: 402_517_733,
  deployedAt: 1_789_999_931,
  detectedAtMs: 1_789_999_998_412,
});
const HEX = 'dd6af6b34b99a1482da8462210149753ca02d7c248d4044a8b7944c1b8b5bdca';

type Case = Readonly<{
  accepted: boolean;
  secret?: string;
  timestamp?: string;
  body?: string | Uint8Array;
  signature?: string;
  now?: number;
}>;

const reprinted = JSON.stringify(JSON.parse(Buffer.from(BODY).toString()), null, 1);

/** Each signature comes from `printf '%s' … | openssl dgst -sha256 -hmac …`. What a case leaves out is as it was sent. */
const CASES: Readonly<Record<string, Case>> = {
  'what was signed': { accepted: true },
  'a clock 300 s behind': { accepted: true, now: AT - 300 },
  'a clock 300 s ahead': { accepted: true, now: AT + 300 },
  'an empty body': {
    accepted: true,
    body: '',
    signature: 'sha256=0e940497d30bd7299dff0d7dcdd315d1ab245bc1f60074959dd0ebd320862a36',
  },
  'a body with bytes that are no UTF-8': {
    accepted: true,
    body: Uint8Array.of(0x61, 0xff, 0x00, 0x0a, 0xc3, 0x28),
    signature: 'sha256=a720b04677d29713f628d031183b809e5269681f52be0ae5f47f4f2502f71cc7',
  },
  'a secret and a body beyond ASCII': {
    accepted: true,
    secret: 'schlüssel',
    body: '{"label":"é"}',
    signature: 'sha256=bd75fd1dd57f54f016589302b1a78dcf12161faf8eaa274f235f00f63f06f720',
  },
  'a timestamp 301 s old': { accepted: false, now: AT + 301 },
  'a timestamp 301 s ahead': { accepted: false, now: AT - 301 },
  'another secret': { accepted: false, secret: 'whsec_0123456789abcdee' },
  'a body with another byte': { accepted: false, body: Buffer.from(BODY).toString().replace('118', '119') },
  'a body that was parsed and printed again': { accepted: false, body: reprinted },
  'a body whose broken bytes were replaced': {
    accepted: false,
    body: 'a\ufffd\0\n\ufffd(',
    signature: 'sha256=a720b04677d29713f628d031183b809e5269681f52be0ae5f47f4f2502f71cc7',
  },
  'a timestamp with a zero before it': { accepted: false, timestamp: `0${AT}` },
  'a timestamp with a line feed after it': { accepted: false, timestamp: `${AT}\n` },
  'an absent timestamp': { accepted: false, timestamp: '' },
  'a timestamp of 400 digits': { accepted: false, timestamp: '9'.repeat(400) },
  'a timestamp that is signed and no number': {
    accepted: false,
    timestamp: 'NaN',
    body: '{}',
    signature: 'sha256=9887ce75413f7d2b85f437eda6779c4956c60cda35775e173069f4272d2a1d9d',
  },
  'a signature cut short': { accepted: false, signature: `sha256=${HEX.slice(0, -1)}` },
  'a signature whose last digit differs': { accepted: false, signature: `sha256=${HEX.slice(0, -1)}b` },
  'a signature in upper case': { accepted: false, signature: `sha256=${HEX.toUpperCase()}` },
  'a signature without its name': { accepted: false, signature: HEX },
  'a signature with as many characters, beyond ASCII': {
    accepted: false,
    signature: `sha256=${HEX.slice(0, -1)}é`,
  },
  'two signatures': { accepted: false, signature: `sha256=${HEX},sha256=${HEX}` },
  'an absent signature': { accepted: false, signature: '' },
};

function sent({ secret = SECRET, timestamp = `${AT}`, body = BODY, ...rest }: Case) {
  return { secret, timestamp, body: Buffer.from(body), signature: `sha256=${HEX}`, now: AT, ...rest };
}

const lines = Object.values(CASES).map((each) => {
  const { secret, timestamp, body, signature, now } = sent(each);
  const fields = [Buffer.from(secret), Buffer.from(timestamp), body, Buffer.from(signature)];
  return `${[...fields.map((field) => field.toString('hex')), now].join('\t')}\n`;
});
const asked = await Promise.all(
  LANGUAGES.map(async (language) => ({ ...language, asked: await ask(language, lines.join('')) })),
);
for (const { name, advice = name, asked: outcome } of asked)
  if (outcome.kind === 'absent')
    console.log(
      `The verifier for ${name} is not tested here; it needs ${advice}. ${outcome.reason.split('\n')[0]}`,
    );

const verdicts = Object.entries(CASES).map(([name, { accepted }], at) => [name, accepted, at] as const);

describe.each(asked)('the verifier for $name in docs/webhooks.md (E31, §4.2)', ({ asked: outcome }) => {
  test.skipIf(outcome.kind === 'absent')('runs as it stands', () => {
    expect(outcome).toMatchObject({ kind: 'answered' });
    expect(outcome.kind === 'answered' && outcome.answers).toHaveLength(lines.length);
  });
  test.skipIf(outcome.kind !== 'answered').each(verdicts)('%s: %p', (_name, accepted, at) => {
    expect(outcome.kind === 'answered' && outcome.answers[at]).toBe(`${accepted}`);
  });
});

describe('the page and the product agree', () => {
  test.each(verdicts.filter(([, accepted]) => accepted))('%s', (name) => {
    const { secret, timestamp, body, signature } = sent(CASES[name] ?? { accepted: true });
    expect(signatureOf(new Secret(secret), Number(timestamp), body)).toBe(signature);
  });
  test('the example is what the sender sends', () => {
    const [, headers = '', body] = /<!-- example -->\s+```http\n([\s\S]*?)\n\n(.*)\n```/.exec(PAGE) ?? [];
    expect(body).toBe(Buffer.from(BODY).toString());
    const secrets = { current: new Secret(SECRET), next: undefined };
    const real = eventHeaders(
      { deliveryId: DELIVERY, eventKind: 'program.upgraded', body: BODY },
      AT,
      secrets,
    );
    const written = headers.split('\n').map((line) => line.split(': '));
    expect(Object.fromEntries(written)).toEqual({ 'content-type': 'application/json', ...real });
  });
});
