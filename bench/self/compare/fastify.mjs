// What a team of JavaScript builds from Fastify's own parts: keys in a set, a rate by key, a proxy. It reads no JSON.
// node fastify.mjs BACKEND KEYS, from a folder with the packages.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.cwd(), 'package.json'));
const [, , backend, keysFile] = process.argv;
const plans = new Map(
  readFileSync(keysFile, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' ')),
);

const app = require('fastify')({ logger: false, keepAliveTimeout: 600_000 });
app.addHook('onRequest', async (request, reply) => {
  if (!plans.has(request.headers['x-token']))
    return reply.code(401).send({ error: 'Invalid or inactive API key' });
});
await app.register(require('@fastify/rate-limit'), {
  max: (_, key) => (plans.get(key) === 'slow' ? 1 : 10_000_000),
  timeWindow: 1_000,
  cache: 200_000,
  keyGenerator: (request) => request.headers['x-token'],
});
await app.register(require('@fastify/http-proxy'), {
  upstream: backend,
  undici: { connections: 256, pipelining: 1, keepAliveTimeout: 600_000, bodyTimeout: 0 },
});
const address = await app.listen({ host: '127.0.0.1', port: 0 });
console.log(new URL(address).port);
