import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../shared/clock.ts';
import { freePort } from '../../../test/started/ports.ts';
import { install, npmFolder, run, startChild, SUBJECT_CORE } from './machine.ts';

/** What a subject is started for. `folder` is its own; `keys` is a file of `key plan` lines. */
export type Setup = Readonly<{
  folder: string;
  backends: readonly number[];
  keys: string;
  processes: number;
  priority: number;
}>;

/** A started subject; CPU time and memory are those of `pid` and its descendants. */
export type Running = Readonly<{ port: number; pid: number }> & AsyncDisposable;

/** What stands between load and backend. */
export type Subject = Readonly<{
  name: string;
  version: string;
  /** Whether it knows keys and rates, and whether credits too. */
  checks: 'nothing' | 'keys' | 'keys and credits';
  /** What it does not do of what Sluice does, for the reader of the table. */
  lacks: string;
  start(setup: Setup): Promise<Running>;
}>;

const PORT_WAIT_MS = 5_000;
const NGINX_MODULES = '/usr/share/nginx/modules';
const FASTIFY = ['fastify@5.12.8', '@fastify/http-proxy@11.6.3', '@fastify/rate-limit@11.2.0'];

/** The peers by name; each installs what it needs when it is called. */
export const PEERS: Readonly<Record<string, () => Promise<Subject>>> = {
  nginx: nginxSubject,
  'nginx-lua': nginxLuaSubject,
  haproxy: haproxySubject,
  fastify: fastifySubject,
};

async function nginxSubject(): Promise<Subject> {
  await install({ nginx: 'nginx' });
  return {
    name: 'nginx',
    version: await nginxVersion(),
    checks: 'nothing',
    lacks: 'keys, limits, usage; reads no JSON, relays a batch whole, does not see a cut answer',
    start: (setup) => startNginx(setup, '', `location / { ${RELAY} }`),
  };
}

async function nginxLuaSubject(): Promise<Subject> {
  await install({
    nginx: 'nginx',
    [join(NGINX_MODULES, 'ngx_http_lua_module.so')]: 'libnginx-mod-http-lua',
    '/usr/lib/x86_64-linux-gnu/lua/5.1/cjson.so': 'lua-cjson',
  });
  return {
    name: 'nginx-lua',
    version: `${await nginxVersion()} with lua-nginx-module`,
    checks: 'keys and credits',
    lacks:
      'limits over processes or hosts, credits that outlive a restart, failover, methods by lane; rounds numbers of a split batch, does not see a cut answer',
    start: (setup) =>
      startNginx(
        setup,
        `lua_package_path '${import.meta.dir}/?.lua;;';
         lua_shared_dict accounts 64m; lua_shared_dict buckets 64m; lua_shared_dict credits 8m; lua_shared_dict usage 64m;
         init_by_lua_block { gateway = require 'gateway'; gateway.load('${setup.keys}') }`,
        `location / { access_by_lua_block { gateway.access() } ${RELAY} }
         location = /backend { internal; ${RELAY} }`,
      ),
  };
}

const RELAY =
  'proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header X-Token ""; proxy_pass http://backend;';

async function startNginx(setup: Setup, http: string, locations: string): Promise<Running> {
  const { folder } = setup;
  const port = freePort();
  mkdirSync(join(folder, 'tmp'), { recursive: true });
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/tmp/${name};`,
  );
  writeFileSync(
    join(folder, 'nginx.conf'),
    `load_module ${NGINX_MODULES}/ndk_http_module.so; load_module ${NGINX_MODULES}/ngx_http_lua_module.so;
     daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/error.log warn;
     events { worker_connections 8192; }
     http {
       access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; ${paths.join(' ')}
       client_max_body_size 10m; client_body_buffer_size 128k; proxy_read_timeout 600s;
       proxy_buffer_size 64k; proxy_buffers 8 64k; proxy_busy_buffers_size 128k; proxy_max_temp_file_size 0;
       ${http}
       upstream backend {
         ${setup.backends.map((backend) => `server 127.0.0.1:${backend};`).join(' ')}
         keepalive 512; keepalive_requests 1000000000; keepalive_timeout 600s;
       }
       server { listen 127.0.0.1:${port} backlog=4096; ${locations} }
     }`,
  );
  const command = ['nginx', '-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')];
  return opened(port, await startListening(command, setup, port));
}

async function haproxySubject(): Promise<Subject> {
  await install({ haproxy: 'haproxy' });
  const [, version] = /version (\S+)/.exec(await run(['haproxy', '-v'])) ?? [];
  return {
    name: 'haproxy',
    version: `HAProxy ${version}, one thread, no splicing`,
    checks: 'nothing',
    lacks: 'keys, limits, usage; reads no JSON, relays a batch whole, does not see a cut answer',
    async start(setup) {
      const { folder, backends } = setup;
      const port = freePort();
      const servers = backends.map((backend, i) => `  server s${i} 127.0.0.1:${backend} maxconn 4096\n`);
      writeFileSync(
        join(folder, 'haproxy.cfg'),
        'global\n  nbthread 1\n  maxconn 8192\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 600s\n' +
          `  timeout server 600s\nfrontend in\n  bind 127.0.0.1:${port}\n  default_backend out\n` +
          `backend out\n  http-reuse always\n${servers.join('')}`,
      );
      const command = ['haproxy', '-db', '-dS', '-f', join(folder, 'haproxy.cfg')];
      return opened(port, await startListening(command, setup, port));
    },
  };
}

async function fastifySubject(): Promise<Subject> {
  await install({ node: 'nodejs', npm: 'npm' });
  const packages = await npmFolder(FASTIFY);
  const node = (await run(['node', '--version'])).trim();
  return {
    name: 'fastify',
    version: `${FASTIFY.join(', ')}, Node ${node}`,
    checks: 'keys',
    lacks: 'hashed keys, credits, usage; reads no JSON, relays a batch whole, does not see a cut answer',
    async start({ backends, keys, priority }) {
      const child = await startChild({
        command: ['node', join(import.meta.dir, 'fastify.mjs'), `http://127.0.0.1:${backends[0]}`, keys],
        cores: SUBJECT_CORE,
        cwd: packages,
        env: { NODE_ENV: 'production' },
        priority,
        ready: /^(\d+)\n/,
      });
      return opened(Number(child.line), child);
    },
  };
}

async function startListening(command: readonly string[], { folder, priority }: Setup, port: number) {
  const child = await startChild({ command, cores: SUBJECT_CORE, cwd: folder, priority });
  await Promise.race([untilOpen(port), child.ended]);
  return child;
}

function opened(port: number, child: Readonly<{ pid: number }> & AsyncDisposable): Running {
  return { port, pid: child.pid, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

async function nginxVersion(): Promise<string> {
  const child = Bun.spawn(['nginx', '-v'], { stderr: 'pipe' });
  return `nginx ${/nginx\/(\S+)/.exec(await child.stderr.text())?.[1]}, one worker`;
}

/** Resolves when something listens on `port`; throws when nothing does for five seconds. */
async function untilOpen(port: number): Promise<void> {
  const limit = AbortSignal.timeout(PORT_WAIT_MS);
  for (;;) {
    const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } }).catch(
      () => undefined,
    );
    if (socket !== undefined) return void socket.end();
    if (limit.aborted) throw new Error(`nothing listens on port ${port}`);
    await systemClock.sleep(20, limit);
  }
}
