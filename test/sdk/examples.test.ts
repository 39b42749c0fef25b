import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../started/process.ts';
import { shared } from '../started/shared.ts';
import { ENTRIES, EXAMPLES, startExamples, TEST_MS_MAX } from './examples.ts';

const LOADER = 'BPFLoaderUpgradeab1e11111111111111111111111';
const page = readFileSync(join(ROOT, 'docs/sdk.md'), 'utf8');
const { run } = shared(await startExamples());

describe.concurrent('each example in TypeScript runs as it stands', () => {
  test.each(ENTRIES)(
    '%s on Bun',
    async (name, shape) => {
      expect(await run([process.execPath, `${name}.ts`], EXAMPLES)).toMatch(shape);
    },
    TEST_MS_MAX,
  );
});

test(
  'helius ends in a sentence where nobody serves DAS, and in the error where it is another',
  async () => {
    const endings = ['Method not found: no backend here serves getAsset', 'Asset Not Found'].map(
      async (message) => {
        await using server = Bun.serve({
          port: 0,
          async fetch(request) {
            const { id, method } = Object(await request.json());
            const error = { code: method === 'getAsset' ? -32_601 : 0, message };
            return Response.json({
              jsonrpc: '2.0',
              id,
              ...(method === 'getSlot' ? { result: 7 } : { error }),
            });
          },
        });
        return await run([process.execPath, 'helius.ts'], EXAMPLES, { SLUICE_URL: server.url.href });
      },
    );
    expect(await Promise.all(endings)).toEqual([
      'slot 7n\nno asset: no backend of this service serves DAS\n',
      expect.stringMatching(/^slot 7n\n$/),
    ]);
  },
  TEST_MS_MAX,
);

describe.concurrent('the scan of the examples', () => {
  const account = (address: string, data = 'AgAAAA==') => {
    const held = {
      data: [data, 'base64'],
      executable: true,
      lamports: 1,
      owner: LOADER,
      rentEpoch: 0,
      space: 4,
    };
    return JSON.stringify({ pubkey: address, account: held });
  };
  const [one, two] = [account(`${'1'.repeat(31)}2`), account(`${'1'.repeat(31)}3`)];

  test(
    'counts the same accounts by lines as in JSON',
    async () => {
      const byJson = await run([process.execPath, 'scan.ts'], EXAMPLES);
      expect(await run([process.execPath, 'scan.ts'], EXAMPLES, { NDJSON: '1' })).toBe(byJson);
    },
    TEST_MS_MAX,
  );

  const json = (...accounts: string[]) => `{"jsonrpc":"2.0","result":[${accounts.join()}],"id":1}`;
  const error = '{"jsonrpc":"2.0","error":{"code":-32010,"message":"excluded"},"id":1}';
  const missing = 'the closing line is missing after';
  test.each([
    ['JSON', json(one, two), 'accounts 2'],
    ['JSON that ends early', json(one).slice(0, -8), 'the answer is not complete'],
    ['an error', error, 'no accounts: {"code":-32010'],
    ['another address', json(account('0'.repeat(32))), 'its address is none'],
    ['less data', json(account('1'.repeat(32), 'AgA=')), 'its data has 2 bytes instead of 4'],
    ['other data', json(account('1'.repeat(32), 'AwAAAA==')), 'it does not match the filter'],
    ['lines', `${one}\n${two}\n{"accounts":2,"slot":null}\n`, 'accounts 2'],
    ['lines without the closing one', `${one}\n${two}\n`, `${missing} 2 accounts`],
    ['fewer lines than it counts', `${one}\n{"accounts":2,"slot":null}\n`, `${missing} 1 accounts`],
    ['a line too many', `{"accounts":0,"slot":null}\n${one}\n`, 'a line follows the closing one'],
  ])(
    'says of %s what it is',
    async (_, body, said) => {
      const type = body.startsWith('{"jsonrpc"') ? 'application/json' : 'application/x-ndjson';
      await using server = Bun.serve({
        port: 0,
        fetch: () => new Response(body, { headers: { 'content-type': type } }),
      });
      const env = { SLUICE_URL: server.url.href, NDJSON: '1' };
      expect(await run([process.execPath, 'scan.ts'], EXAMPLES, env)).toContain(said);
    },
    TEST_MS_MAX,
  );
});

describe('docs/sdk.md', () => {
  const quotes = [...page.matchAll(/From \[`(\S+)`\]\(\.\.\/\1\):\n\n```[a-z]+\n([\s\S]*?)```/g)];

  test('begins with what costs most to learn', () => {
    expect(page.split('\n')[0]).toBe(
      '_A transaction that was sent stays sent; never send another one with a new blockhash because a wait failed._',
    );
  });
  test('shows no code but what stands in an example', () => {
    expect(quotes).toHaveLength(page.split(/^```[a-z]+$/m).length - 1);
    for (const [, path = '', code = ''] of quotes) {
      const file = readFileSync(join(ROOT, path), 'utf8');
      for (const part of code.split(/\n(?=\n\/\*\*)/)) expect(file).toContain(part.trim());
    }
  });
  const { dependencies, devDependencies, workspaces } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  );
  const versions = { ...dependencies, ...devDependencies, ...workspaces.catalog };
  test('names the packages of each example in TypeScript, with the versions of the tests', () => {
    for (const [entry] of ENTRIES) {
      const [, others = '', packages = ''] =
        new RegExp(`^\\| \`${entry}.ts\`(.*?) *\\| \`(.*)\` *\\|$`, 'm').exec(page) ?? [];
      const files = [`${entry}.ts`, ...[...others.matchAll(/`(.*?)`/g)].map(([, name = '']) => name)];
      const imported = files.flatMap((file) =>
        [...readFileSync(join(EXAMPLES, file), 'utf8').matchAll(/ from '(.*?)';/g)].map(
          ([, name = '']) => name,
        ),
      );
      const bare = imported.filter((name) => !/^(\.|node:)/.test(name));
      const named = new Set(bare.map((name) => (/^(@[^/]+\/)?[^/]+/.exec(name) ?? [''])[0]));
      const beside = imported.filter((name) => name.startsWith('./')).map((name) => name.slice(2));
      expect([entry, files.slice(1)]).toEqual([entry, [...new Set(beside)]]);
      // What stands in the table of clients is what this installs.
      const pinned = [...named].map((name) => `${name}@${versions[name]}`);
      expect([entry, packages.split(' ').toSorted()]).toEqual([entry, pinned.toSorted()]);
    }
  });
  test('names the versions that are installed for the tests', () => {
    const read = (path: string) => readFileSync(join(EXAMPLES, path), 'utf8');
    const asked = { ...versions, umi: versions['@metaplex-foundation/umi'] };
    const rows = [...page.matchAll(/^\| (\S+) (\d+\.\d+\.\d+) +\|/gm)].map(([, name = '', version]) => [
      name,
      version,
    ]);
    const pinned = {
      ...asked,
      'solana-go': /solana-go v([\d.]+)/.exec(read('go/go.mod'))?.[1],
      'solana-rpc-client': /solana-rpc-client = .*"=([\d.]+)"/.exec(read('rust/Cargo.toml'))?.[1],
      'solana-py': /^solana==([\d.]+)/m.exec(read('python/requirements.txt'))?.[1],
    };
    expect(rows).toHaveLength(9);
    expect(rows).toEqual(rows.map(([name = '']) => [name, pinned[name]]));
  });
});
