import { describe, expect, test } from 'bun:test';
import { configFrom, urlOf } from '../../../shared/config/config.ts';
import { type Plan, PLANS_BY_DEFAULT, PRICES_BY_DEFAULT } from '../../../shared/config/plans.ts';
import { problemLine, shown } from '../../../shared/config/table.ts';

const SEAL = Buffer.alloc(32, 7).toString('base64');
const backend = { name: 'a', url: 'http://10.0.0.1:8899' };

function configOf(document: unknown, env: Record<string, string> = {}) {
  const result = configFrom(document, env);
  if (result.kind === 'problems') throw new Error(result.problems.map(problemLine).join('\n'));
  return result.config;
}

function problemsOf(document: unknown, env: Record<string, string> = {}) {
  const result = configFrom(document, env);
  return result.kind === 'problems' ? result.problems : [];
}

test('the default has the plans and prices of the tables; the trial is 5 calls a second (§2.7, §2.8)', () => {
  const { plans, prices } = configOf({});
  expect(Object.fromEntries(plans)).toEqual(PLANS_BY_DEFAULT);
  expect(plans.get('trial')?.rps).toBe(5);
  expect(prices).toEqual({ default: 1, methods: new Map(PRICES_BY_DEFAULT) });
});

describe('values', () => {
  test('a plan table changes its row alone, and a new plan needs only its rate (§2.7)', () => {
    const { plans } = configOf({ plans: { trial: { rps: 7 }, tiny: { rps: 0.5 } } });
    expect(plans.get('trial')).toEqual({ ...PLANS_BY_DEFAULT['trial'], rps: 7 } as Plan);
    const tiny = { rps: 0.5, burst: 1, credits: undefined, batchMax: 100, scans: 1, inFlight: 16 };
    expect(plans.get('tiny')).toEqual(tiny);
    expect(plans.get('pro')?.rps).toBe(100);
  });
  test('a plan has as many calls at once as its burst, sixteen at least, or what its table says', () => {
    for (const { burst, inFlight } of Object.values(PLANS_BY_DEFAULT))
      expect(inFlight).toBe(Math.max(burst, 16));
    const { plans } = configOf({
      plans: { pro: { burst: 500 }, trial: { in_flight: 4 }, big: { rps: 400 }, small: { rps: 1 } },
    });
    const inFlight = (name: string) => plans.get(name)?.inFlight;
    expect(['pro', 'trial', 'big', 'small', 'scale'].map(inFlight)).toEqual([500, 4, 800, 16, 2_000]);
  });
  test('answers are compressed by what the config names, in its order; by nothing until it does', () => {
    expect(configOf({}).gateway.compress).toEqual([]);
    const compressOf = (compress: string) => configOf({ gateway: { compress } }).gateway.compress;
    expect(['off', 'zstd', 'zstd,gzip'].map(compressOf)).toEqual([[], ['zstd'], ['zstd', 'gzip']]);
  });
  test('a price of the config replaces or adds one', () => {
    const { prices } = configOf({ credits: { default: 0, methods: { getBlock: 3, getNew: 4 } } });
    expect([prices.default, prices.methods.get('getBlock'), prices.methods.get('getNew')]).toEqual([0, 3, 4]);
    expect(prices.methods.get('getTransaction')).toBe(10);
  });
  test('"env:NAME" takes any value from the environment, numbers and members of lists too', () => {
    const config = configOf(
      {
        storage: { secret: 'env:SEAL' },
        gateway: { idle_seconds: 'env:IDLE' },
        deploys: { rpc_urls: ['env:URL'] },
        backends: [{ ...backend, headers: { Authorization: 'env:TOKEN' } }],
      },
      { SEAL, IDLE: '9', TOKEN: 'Bearer t0ken', URL: 'http://h:1/' },
    );
    expect(config.storage.secret?.reveal()).toBe(SEAL);
    expect(config.gateway.idleMs).toBe(9_000);
    expect(config.deploys.rpcUrls.map(String)).toEqual(['http://h:1/']);
    expect(config.backends[0]?.headers.get('authorization')?.reveal()).toBe('Bearer t0ken');
  });
  test.each([
    ['0.0.0.0:1', 'http://127.0.0.1:1/'],
    ['[::]:2', 'http://[::1]:2/'],
    ['[fe80::1]:3', 'http://[fe80::1]:3/'],
    ['host.example:4', 'http://host.example:4/'],
  ])('a listener on %s is reached at %s', (listen, url) => {
    expect(urlOf(configOf({ gateway: { listen } }).gateway.listen).href).toBe(url);
  });
});

test('the memory for bodies under way has room for the longest, also where only that is set', () => {
  const bytesOf = (gateway: object) => configOf({ gateway }).gateway.bodiesBytes;
  expect(bytesOf({})).toBe(134_217_728);
  expect(bytesOf({ max_body_bytes: 134_217_728 })).toBe(201_326_592);
  expect(bytesOf({ bodies_bytes: 1_572_864 })).toBe(1_572_864);
});

describe('a problem names its key', () => {
  test.each([
    ['gatway', { gatway: {} }],
    ['gateway.lisen', { gateway: { lisen: '127.0.0.1:1' } }],
    ['gateway', { gateway: 5 }],
    ['gateway.listen', { gateway: { listen: '8899' } }],
    ['gateway.listen', { gateway: { listen: '127.0.0.1:65536' } }],
    ['gateway.listen', { gateway: { listen: '::1:80' } }],
    ['gateway.processes', { gateway: { processes: 1.5 } }],
    ['gateway.bodies_bytes', { gateway: { bodies_bytes: 1_572_863 } }],
    ['gateway.bodies_bytes', { gateway: { bodies_bytes: 100_000, max_body_bytes: 66_667 } }],
    ['gateway.hedge', { gateway: { hedge: 1 } }],
    ['gateway.tls.key', { gateway: { tls: { cert: 'c.pem' } } }],
    ['gateway.tls.cert', { gateway: { tls: { key: 'k.pem' } } }],
    ['deploys.public_url', { deploys: { public_url: 'ftp://x' } }],
    ['deploys.rpc_urls', { deploys: { rpc_urls: ['x'] } }],
    ['deploys.programs', { deploys: { programs: '' } }],
    ['storage.secret', { storage: { secret: 'short' } }],
    ['backends', { backends: {} }],
    ['backends', { backends: [backend, backend] }],
    ['backends[0].name', { backends: [{ url: backend.url }] }],
    ['backends[0].url', { backends: [{ name: 'a' }] }],
    ['backends[0].url', { backends: [{ name: 'a', url: 'http://user:100%@10.0.0.1' }] }],
    ['backends[0].lanes', { backends: [{ ...backend, lanes: ['fast'] }] }],
    ['backends[0].lanes', { backends: [{ ...backend, lanes: ['state', 'state'] }] }],
    ['backends[0].methods', { backends: [{ ...backend, methods: ['get slot'] }] }],
    ['backends[0].headers.Host', { backends: [{ ...backend, headers: { Host: 'x' } }] }],
    ['backends[0].headers.x-a', { backends: [{ ...backend, headers: { 'x-a': 'a\nb' } }] }],
    ['backends[1].port', { backends: [backend, { ...backend, name: 'b', port: 1 }] }],
    ['plans.none', { plans: { none: { rps: 1 } } }],
    ['plans.new.rps', { plans: { new: { burst: 1 } } }],
    ['plans.pro.rps', { plans: { pro: { rps: 0 } } }],
    ['plans.pro.scans', { plans: { pro: { scans: 65_536 } } }],
    ['gateway.compress', { gateway: { compress: 'toString' } }],
    ['credits.methods.getSlot', { credits: { methods: { getSlot: '1x' } } }],
  ])('%s of %j', (key, document) =>
    expect(problemsOf(document).map((problem) => problem.key)).toEqual([key]),
  );

  test('what was found, what is wanted and an example stand in its line', () => {
    const [problem] = problemsOf({ gateway: { processes: 'many' } });
    if (problem === undefined) throw new Error('no problem');
    expect(problemLine(problem)).toBe(
      'gateway.processes: found "many", expected a whole number from 1 to 256 (for example 2)',
    );
  });

  test('an unset variable is named, and an empty one counts as unset', () => {
    for (const env of [{}, { SEAL: '' }] as Record<string, string>[]) {
      const [problem] = problemsOf({ storage: { secret: 'env:SEAL' } }, env);
      expect(problem?.expected).toBe('the environment variable SEAL to be set');
    }
  });
});

describe('secrets', () => {
  const env = { BAD: 'hunter2 too short', TOKEN: 'hunter2\u0000' };
  test('never stand in a problem, whether from the environment or the file', () => {
    const problems = [
      ...problemsOf({ storage: { secret: 'env:BAD' } }, env),
      ...problemsOf({ storage: { secret: 'hunter2' } }),
      ...problemsOf({ backends: [{ ...backend, headers: { 'x-a': 'env:TOKEN' } }] }, env),
    ];
    expect(problems).toHaveLength(3);
    expect(JSON.stringify(problems)).not.toContain('hunter2');
  });
  test('never stand in a printed config', () => {
    const config = configOf({
      deploys: { rpc_key: 'hunter2' },
      storage: { redis: 'redis://:hunter2@h' },
      backends: [{ ...backend, headers: { a: 'hunter2' } }],
    });
    expect(config.deploys.rpcKey?.reveal()).toBe('hunter2');
    expect(JSON.stringify(config) + Bun.inspect(config, { depth: 9 })).not.toContain('hunter2');
  });
});

test.each([
  [undefined, 'nothing'],
  ['a\nb', '"a\\nb"'],
  [{ a: 1 }, '{"a":1}'],
  ['x'.repeat(99), `"${'x'.repeat(56)}...`],
])('%p is shown as %s', (value, text) => expect(shown(value)).toBe(text));

describe('what a secret that is not set means', () => {
  const document = {
    deploys: { rpc_key: 'env:NOBODY', rpc_urls: ['env:NOBODY'] },
    backends: [{ ...backend, headers: { authorization: 'env:NOBODY' } }],
  };
  test('to an app: a problem each', () => {
    expect(problemsOf(document).map(({ key }) => key)).toEqual([
      'backends[0].headers.authorization',
      'deploys.rpc_urls',
      'deploys.rpc_key',
    ]);
  });
  test('to a command on the database: nothing, because it may be there to make one of them', () => {
    expect(configFrom(document, {}, 'is-absent').kind).toBe('config');
  });
});

describe('addresses', () => {
  test('two listeners on one are a problem that names both', () => {
    const [problem, ...rest] = problemsOf({
      gateway: { listen: '127.0.0.1:7000' },
      deploys: { listen: '127.0.0.1:7000' },
    });
    expect([problem?.key, problem?.expected, rest]).toEqual([
      'deploys.listen',
      'another address than gateway.listen',
      [],
    ]);
  });
  test('port 0 may stand for two listeners', () => {
    expect(problemsOf({ gateway: { listen: '127.0.0.1:0', metrics: '127.0.0.1:0' } })).toEqual([]);
  });
  test.each([
    ['0.0.0.0:9000', 'https://127.0.0.1:9000/'],
    ['127.0.0.1:80', 'https://127.0.0.1:80/'],
  ])('deploys reads through the gateway that listens at %s with TLS by %s', (listen, url) => {
    const tls = { cert: 'c.pem', key: 'k.pem' };
    const { deploys } = configOf({ gateway: { listen, tls }, backends: [backend] });
    expect(deploys.rpcUrls.map(({ href }) => href)).toEqual([url]);
  });
});
